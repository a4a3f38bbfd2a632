package main

import (
	"net"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestG2_aReplicaSaysWhereTheOthersReachIt(t *testing.T) {
	shared := storeOptions{}
	shared.cluster.Endpoints = []string{"https://etcd:2379"}
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7433}
	for _, test := range []struct {
		name  string
		given options
		at    *net.TCPAddr
		want  string
		fault string
	}{
		{"where it listens", options{store: shared}, loopback, "https://own", ""},
		{"as it is told", options{store: shared, advertise: "https://kurad-1:7433/"}, loopback, "https://kurad-1:7433", ""},
		{"everywhere, alone", options{}, &net.TCPAddr{IP: net.IPv4zero, Port: 7433}, "https://own", ""},
		{"everywhere, among others", options{store: shared, listen: "0.0.0.0:7433"}, &net.TCPAddr{IP: net.IPv4zero, Port: 7433}, "", "--advertise https://<its name>:7433"},
		{"in the clear, on this machine", options{store: shared, advertise: "http://127.0.0.1:7433"}, loopback, "http://127.0.0.1:7433", ""},
		{"in the clear, by name on this machine", options{store: shared, advertise: "http://localhost:7433"}, loopback, "http://localhost:7433", ""},
		{"in the clear, on this machine by IPv6", options{store: shared, advertise: "http://[::1]:7433"}, loopback, "http://[::1]:7433", ""},
		{"in the clear", options{store: shared, advertise: "http://kurad-1:7433"}, loopback, "", "tokens would cross the network in the clear; advertise https://kurad-1:7433"},
		{"in the clear, by address", options{store: shared, advertise: "http://10.0.0.7:7433"}, loopback, "", "--tls-cert"},
		{"no URL", options{store: shared, advertise: "kurad-1:7433"}, loopback, "", "is not the URL of an API"},
	} {
		got, err := advertised(test.given, test.at, "https://own")
		if got != test.want || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: %q, %v; want %q %q", test.name, got, err, test.want, test.fault)
		}
	}
}

func TestG3_theVersionSaysWhoLeadsAndHowTheStoreDoes(t *testing.T) {
	for _, test := range []struct {
		leader api.Leader
		want   string
	}{
		{api.Leader{Self: true, URL: "https://a"}, "it leads"},
		{api.Leader{URL: "https://a"}, "another kurad leads, at https://a"},
		{api.Leader{}, "nobody leads"},
	} {
		var b strings.Builder
		printDaemon(&b, api.VersionInfo{Leader: test.leader, Conditions: []api.DaemonCondition{{Type: "StoreHealthy", Status: fleet.False, Reason: "NearQuota", Message: "83 % of the quota"}}})
		if got := b.String(); !strings.Contains(got, test.want) || !strings.Contains(got, "StoreHealthy=False/NearQuota 83 % of the quota") {
			t.Errorf("%+v prints:\n%s", test.leader, got)
		}
	}
}
