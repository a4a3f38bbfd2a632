package kubecontroller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Control is how another process tells the controller what Set and Heal tell it:
//
//	PUT    /behaviour?namespace=kura&name=kura-acme-eu   {"stuck": true, "roll_out": "5s"}
//	PUT    /behaviour                                    for all that were told nothing of their own
//	DELETE /behaviour                                    takes everything back
func (k *Controller) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /behaviour", func(w http.ResponseWriter, r *http.Request) {
		var told struct {
			Behaviour
			RollOut fleet.Duration `json:"roll_out"` // as text
			Notice  fleet.Duration `json:"notice"`
		}
		in := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16))
		in.DisallowUnknownFields()
		if err := in.Decode(&told); err != nil {
			say(w, http.StatusBadRequest, map[string]string{"error": fmt.Sprintf("the body is no behaviour: %v", err)})
			return
		}
		namespace, name := r.URL.Query().Get("namespace"), r.URL.Query().Get("name")
		if (namespace == "") != (name == "") {
			say(w, http.StatusBadRequest, map[string]string{"error": "namespace and name go together: give both for one instance, none for all"})
			return
		}
		told.Behaviour.RollOut, told.Behaviour.Notice = time.Duration(told.RollOut), time.Duration(told.Notice)
		k.Set(namespace, name, told.Behaviour)
		say(w, http.StatusOK, told.Behaviour)
	})
	mux.HandleFunc("DELETE /behaviour", func(w http.ResponseWriter, _ *http.Request) {
		k.Heal()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}
