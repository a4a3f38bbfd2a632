package server

import (
	"fmt"
	"testing"
	"time"
)

func TestLogins_countByAddressAndRememberSoMany(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := newLogins(2, func() time.Time { return now })
	fail := func(addr string) { l.fail(addr); l.fail(addr) }
	fail("192.0.2.1:1000")
	fail("[2001:db8:1:2::3]:1000")
	fail("[::ffff:192.0.2.9]:1")
	for addr, limited := range map[string]bool{
		"192.0.2.1:1": true, "192.0.2.2:1000": false, "192.0.2.9:7": true,
		"[2001:db8:1:2:ffff::1]:9": true, "[2001:db8:1:3::3]:1000": false, "nowhere": false,
	} {
		if got := l.wait(addr); (got > 0) != limited || got > 30*time.Second {
			t.Errorf("%s waits %s; limited: %v", addr, got, limited)
		}
	}
	fail("nowhere") // what is no address is one
	if l.wait("elsewhere") == 0 {
		t.Error("what is no address is not limited")
	}
	for i := range maxSources {
		l.fail(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	if l.by.Len() != maxSources {
		t.Errorf("%d addresses are remembered", l.by.Len())
	}
	if l.wait("192.0.2.1:1") != 0 {
		t.Error("the one that failed longest ago is not forgotten")
	}
}
