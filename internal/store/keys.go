package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Kind is what a record is.
type Kind string

// Kinds of records.
const (
	KindSchema      Kind = "schema"
	KindAccount     Kind = "account"
	KindTemplate    Kind = "template"
	KindRegion      Kind = "region"
	KindIntent      Kind = "intent"
	KindStatus      Kind = "status"
	KindClaims      Kind = "claims"
	KindTry         Kind = "try"
	KindDeployment  Kind = "deployment"
	KindEvent       Kind = "event"
	KindToken       Kind = "token"
	KindReservation Kind = "reservation"
	KindReference   Kind = "reference"
	KindEndpoint    Kind = "endpoint"
	KindLeader      Kind = "leader"
	KindLock        Kind = "exclusion"
	KindAnchor      Kind = "anchor"
	KindCluster     Kind = "cluster"
	KindOrphan      Kind = "orphan"
)

// keyRoot is where the keys of all environments begin; their names follow.
const keyRoot = "/kura/v1/"

// Folders of the keys, below the environment's prefix.
const (
	schemaKey         = "schema"
	accountsFolder    = "accounts/"
	templatesFolder   = "templates/"
	regionsFolder     = "regions/"
	serversFolder     = "servers/"
	deploymentsFolder = "deployments/"
	eventsFolder      = "events/"
	tokensFolder      = "tokens/"
	endpointsFolder   = "endpoints/"
	hostsFolder       = "hosts/"
	globalsFolder     = "globals/" // of reservations: their records are those of hosts
	sharesFolder      = "shares/"  // of schemas 1 and 2
	handlesFolder     = "handles/"
	instancesFolder   = "instances/"
	portsFolder       = "ports/"
	refsFolder        = "refs/"
	leaderFolder      = "leader/"
	anchorsFolder     = "anchors/"
	departedKey       = refsFolder + "departed"
	lockKey           = "exclusion"
	clustersFolder    = "clusters/"
	orphansFolder     = "orphans/"
)

func serverFolder(k fleet.ServerKey) string { return serversFolder + k.Region + "/" + k.Account + "/" }
func intentKey(k fleet.ServerKey) string    { return serverFolder(k) + "intent" }
func statusKey(k fleet.ServerKey) string    { return serverFolder(k) + "status" }
func claimsKey(k fleet.ServerKey) string    { return serverFolder(k) + "claims" }
func tryKey(k fleet.ServerKey) string       { return serverFolder(k) + "try" }
func deploymentFolder(k fleet.ServerKey) string {
	return deploymentsFolder + k.Region + "/" + k.Account + "/"
}
func eventFolder(k fleet.ServerKey) string   { return eventsFolder + k.Region + "/" + k.Account + "/" }
func accountRefs(id string) string           { return refsFolder + accountsFolder + id + "/" }
func accountRef(k fleet.ServerKey) string    { return accountRefs(k.Account) + k.Region }
func templateRefs(name string) string        { return refsFolder + templatesFolder + name + "/" }
func templateRef(name, region string) string { return templateRefs(name) + region }
func identityKey(cluster, namespace string) string {
	return clustersFolder + cluster + "/" + namespace
}
func orphanFolder(cluster, namespace string) string {
	return orphansFolder + cluster + "/" + namespace + "/"
}
func endpointFolder(account string) string { return endpointsFolder + account + "/" }
func endpointKey(c fleet.CacheEndpoint) string {
	return endpointFolder(c.Account) + c.Key()
}
func deploymentKey(k fleet.ServerKey, seq int64) string {
	return deploymentFolder(k) + fmt.Sprintf("%010d", seq)
}
func eventKey(k fleet.ServerKey, seq int64) string {
	return eventFolder(k) + fmt.Sprintf("%02d", seq%MaxEvents)
}

// place is what a key, below the environment's prefix, names.
type place struct {
	kind   Kind
	server fleet.ServerKey // of server records, deployments and events
	name   string          // of all others; account/key of cache endpoints
	seq    int64           // of deployments
}

// parseKey returns what a key names; false where it is none of ours.
func parseKey(key string) (place, bool) {
	if key == schemaKey {
		return place{kind: KindSchema}, true
	}
	if key == lockKey {
		return place{kind: KindLock}, true
	}
	folder, rest, ok := strings.Cut(key, "/")
	if !ok || rest == "" {
		return place{}, false
	}
	switch folder + "/" {
	case accountsFolder:
		return place{kind: KindAccount, name: rest}, true
	case templatesFolder:
		return place{kind: KindTemplate, name: rest}, true
	case regionsFolder:
		return place{kind: KindRegion, name: rest}, true
	case tokensFolder:
		return place{kind: KindToken, name: rest}, true
	case endpointsFolder:
		return place{kind: KindEndpoint, name: rest}, strings.Contains(rest, "/")
	case clustersFolder:
		return place{kind: KindCluster, name: rest}, strings.Contains(rest, "/")
	case hostsFolder, handlesFolder, instancesFolder, portsFolder:
		return place{kind: KindReservation, name: key}, true
	case orphansFolder:
		return place{kind: KindOrphan, name: rest}, strings.Count(rest, "/") == 2
	case refsFolder:
		return place{kind: KindReference, name: rest}, true
	case anchorsFolder:
		return place{kind: KindAnchor, name: rest}, true
	case leaderFolder:
		return place{kind: KindLeader, name: rest}, true
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 {
		return place{}, false
	}
	p := place{server: fleet.ServerKey{Region: parts[0], Account: parts[1]}}
	switch folder + "/" {
	case serversFolder:
		p.kind = Kind(parts[2])
		return p, p.kind == KindIntent || p.kind == KindStatus || p.kind == KindClaims || p.kind == KindTry
	case deploymentsFolder:
		seq, err := strconv.ParseInt(parts[2], 10, 64)
		p.kind, p.seq = KindDeployment, seq
		return p, err == nil
	case eventsFolder:
		p.kind = KindEvent
		return p, true
	}
	return place{}, false
}

// describe names in words what a key, below the environment's prefix, holds.
func describe(key string) string {
	p, ok := parseKey(key)
	if !ok {
		return "record " + key
	}
	switch p.kind {
	case KindSchema:
		return "the schema record"
	case KindAccount, KindRegion, KindToken:
		return fmt.Sprintf("%s %q", p.kind, p.name)
	case KindTemplate:
		return fmt.Sprintf("host template %q", p.name)
	case KindIntent:
		return "server " + p.server.String()
	case KindStatus:
		return "the status of server " + p.server.String()
	case KindTry:
		return "the newest try of server " + p.server.String()
	case KindClaims:
		return "the reservations of server " + p.server.String()
	case KindDeployment:
		return fmt.Sprintf("deployment %d of server %s", p.seq, p.server)
	case KindEvent:
		return "the events of server " + p.server.String()
	case KindReservation:
		return Reservation(p.name).String()
	case KindEndpoint:
		return "cache endpoint " + p.name
	case KindCluster:
		return "the identity of cluster " + p.name
	case KindOrphan:
		return "the end of orphan " + p.name
	case KindReference:
		return "the reference " + p.name
	case KindAnchor:
		return "the anchor of audit log " + p.name
	case KindLeader:
		return "the leader"
	case KindLock:
		return "a declaration that others are rendered from"
	}
	return "record " + key
}
