package api

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"
)

func pemOf(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestSecret_neverShows(t *testing.T) {
	s := NewSecret("hunter2")
	for _, format := range []string{"%s", "%v", "%+v", "%#v", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(format, s); got != "***" {
			t.Errorf("%s prints %s", format, got)
		}
	}
	b, err := json.Marshal(struct{ S Secret }{s})
	if string(b) != `{"S":"***"}` || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	var back Secret
	if err := json.Unmarshal([]byte(`"x"`), &back); err != nil || back.Reveal() != "x" || back.Empty() {
		t.Errorf("%v, %v", back.Reveal(), err)
	}
}
