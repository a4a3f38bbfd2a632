package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRemovals_onlyOfTheOwnNetwork(t *testing.T) {
	table := `-P PREROUTING ACCEPT
-N NETAVARK-1
-N NETAVARK-DN-1
-N NETAVARK-DN-10
-N NETAVARK-HOSTPORT-DNAT
-A POSTROUTING -j NETAVARK-HOSTPORT-MASQ
-A POSTROUTING -s 10.213.1.0/24 -j NETAVARK-1
-A NETAVARK-1 -d 10.213.1.0/24 -j ACCEPT
-A NETAVARK-1 ! -d 224.0.0.0/4 -j MASQUERADE
-A NETAVARK-DN-1 -d 127.0.0.1/32 -p tcp -m tcp --dport 39137 -j DNAT --to-destination 10.213.1.9:8080
-A NETAVARK-DN-10 -d 127.0.0.1/32 -p tcp -m tcp --dport 39138 -j DNAT --to-destination 10.213.10.9:8080
-A NETAVARK-HOSTPORT-DNAT -p tcp -m tcp --dport 39137 -m comment --comment "dnat name: kura id: 1" -j NETAVARK-DN-1
-A NETAVARK-HOSTPORT-DNAT -p tcp -m tcp --dport 39138 -m comment --comment "dnat name: kura id: 10" -j NETAVARK-DN-10
-A NETAVARK_FORWARD -d 10.213.1.0/24 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
`
	var got []string
	for _, args := range (network{number: 1}).removals(table) {
		got = append(got, strings.Join(args, "|"))
	}
	want := []string{
		"-D|POSTROUTING|-s|10.213.1.0/24|-j|NETAVARK-1",
		"-D|NETAVARK-HOSTPORT-DNAT|-p|tcp|-m|tcp|--dport|39137|-m|comment|--comment|dnat name: kura id: 1|-j|NETAVARK-DN-1",
		"-D|NETAVARK_FORWARD|-d|10.213.1.0/24|-m|conntrack|--ctstate|RELATED,ESTABLISHED|-j|ACCEPT",
		"-F|NETAVARK-1", "-F|NETAVARK-DN-1", "-X|NETAVARK-1", "-X|NETAVARK-DN-1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
