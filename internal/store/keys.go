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

// folders are those of the keys whose rest is a name, of so many parts.
var folders = map[string]struct {
	kind  Kind
	parts int
}{
	accountsFolder: {KindAccount, 1}, templatesFolder: {KindTemplate, 1}, regionsFolder: {KindRegion, 1}, tokensFolder: {KindToken, 1},
	endpointsFolder: {KindEndpoint, 2}, clustersFolder: {KindCluster, 2}, orphansFolder: {KindOrphan, 3},
	refsFolder: {KindReference, 1}, anchorsFolder: {KindAnchor, 1}, leaderFolder: {KindLeader, 1},
}

// parseKey returns what a key names; false where it is none of ours.
func parseKey(key string) (place, bool) {
	switch key {
	case schemaKey:
		return place{kind: KindSchema}, true
	case lockKey:
		return place{kind: KindLock}, true
	}
	folder, rest, ok := strings.Cut(key, "/")
	if !ok || rest == "" {
		return place{}, false
	}
	folder += "/"
	if f, ok := folders[folder]; ok {
		return place{kind: f.kind, name: rest}, strings.Count(rest, "/") >= f.parts-1
	}
	parts := strings.Split(rest, "/")
	switch p := (place{}); folder {
	case hostsFolder, handlesFolder, instancesFolder, portsFolder:
		return place{kind: KindReservation, name: key}, true
	case serversFolder, deploymentsFolder, eventsFolder:
		if len(parts) != 3 {
			return p, false
		}
		p.server = fleet.ServerKey{Region: parts[0], Account: parts[1]}
		switch folder {
		case serversFolder:
			p.kind = Kind(parts[2])
			return p, p.kind == KindIntent || p.kind == KindStatus || p.kind == KindClaims || p.kind == KindTry
		case deploymentsFolder:
			seq, err := strconv.ParseInt(parts[2], 10, 64)
			p.kind, p.seq = KindDeployment, seq
			return p, err == nil
		}
		p.kind = KindEvent
		return p, true
	}
	return place{}, false
}

// words say what a key of a kind names, by its server or its name.
var words = map[Kind]string{
	KindAccount: "account %q", KindRegion: "region %q", KindToken: "token %q", KindTemplate: "host template %q",
	KindEndpoint: "cache endpoint %s", KindCluster: "the identity of cluster %s", KindOrphan: "the end of orphan %s",
	KindReference: "the reference %s", KindAnchor: "the anchor of audit log %s",
	KindIntent: "server %s", KindStatus: "the status of server %s", KindTry: "the newest try of server %s",
	KindClaims: "the reservations of server %s", KindEvent: "the events of server %s",
}

// describe names in words what a key, below the environment's prefix, holds.
func describe(key string) string {
	p, ok := parseKey(key)
	switch {
	case !ok:
	case p.kind == KindSchema:
		return "the schema record"
	case p.kind == KindLeader:
		return "the leader"
	case p.kind == KindLock:
		return "a declaration that others are rendered from"
	case p.kind == KindReservation:
		return Reservation(p.name).String()
	case p.kind == KindDeployment:
		return fmt.Sprintf("deployment %d of server %s", p.seq, p.server)
	case p.name != "":
		return fmt.Sprintf(words[p.kind], p.name)
	default:
		return fmt.Sprintf(words[p.kind], p.server)
	}
	return "record " + key
}
