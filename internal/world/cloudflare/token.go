package cloudflare

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Permission is what a token may do, in the words of Cloudflare's dashboard.
type Permission string

// The permissions that DNS and load balancing need; who may edit may read.
const (
	ZoneRead      Permission = "Zone:Read"
	DNSRead       Permission = "DNS:Read"
	DNSEdit       Permission = "DNS:Edit"
	BalancersRead Permission = "Load Balancers:Read"
	BalancersEdit Permission = "Load Balancers:Edit"
	PoolsRead     Permission = "Load Balancing: Monitors And Pools:Read"
	PoolsEdit     Permission = "Load Balancing: Monitors And Pools:Edit"
)

// AllPermissions are what kurad asks for.
var AllPermissions = []Permission{ZoneRead, DNSEdit, BalancersEdit, PoolsEdit}

// Token is an API token.
type Token struct {
	Value       string       `json:"value"`
	Name        string       `json:"name"`               // who it is given to: its changes carry it; made of Value by default
	User        string       `json:"user,omitempty"`     // whose budget it uses up; "user" by default
	Permissions []Permission `json:"permissions"`        // nil: AllPermissions
	Zones       []string     `json:"zones,omitempty"`    // names of the zones it is for; nil: all
	Accounts    []string     `json:"accounts,omitempty"` // names of the accounts it is for; nil: all
	Status      string       `json:"status,omitempty"`   // active by default; disabled, expired
}

// SetToken gives out a token, or changes the one of that value.
func (e *Emulator) SetToken(token Token) {
	if token.Permissions == nil {
		token.Permissions = AllPermissions
	}
	token.Name, token.User, token.Status = cmp.Or(token.Name, "token "+token.id()[:8]), cmp.Or(token.User, "user"), cmp.Or(token.Status, "active")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revoke(token.Value)
	e.tokens = append(e.tokens, &token)
}

// Revoke takes the token of that value back: it is unknown from now on.
func (e *Emulator) Revoke(value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revoke(value)
}

func (e *Emulator) revoke(value string) {
	e.tokens = slices.DeleteFunc(e.tokens, func(t *Token) bool { return t.Value == value })
}

func (t *Token) may(permission Permission) bool {
	edit := Permission(strings.Replace(string(permission), ":Read", ":Edit", 1))
	return slices.Contains(t.Permissions, permission) || slices.Contains(t.Permissions, edit)
}

func (t *Token) forZone(z *zone) bool {
	return t.Zones == nil || slices.Contains(t.Zones, z.Name)
}

func (t *Token) forAccount(name string) bool {
	return t.Accounts == nil || slices.Contains(t.Accounts, name)
}

func (t *Token) id() string { return identifier("token", t.Value) }

// authenticate finds the caller. The forms are those that users of such clients report: a header that is none is
// 400 and 6003 (cloudflare-cli 58, ultimate-multisite 73), a token that is unknown 403 and 9109, but 401 and 1000
// where it is asked about itself; one that was disabled or has expired is still told so there.
func (e *Emulator) authenticate(r *http.Request, verify bool) (*Token, *failure) {
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || value == "" || strings.ContainsAny(value, " \t") {
		return nil, &failure{status: http.StatusBadRequest, Code: 6003, Message: "Invalid request headers",
			Chain: []failure{{Code: 6111, Message: "Invalid format for Authorization header"}}}
	}
	i := slices.IndexFunc(e.tokens, func(t *Token) bool { return t.Value == value })
	switch {
	case i >= 0 && (verify || e.tokens[i].Status == "active"):
		return e.tokens[i], nil
	case verify:
		return nil, &failure{status: http.StatusUnauthorized, Code: 1000, Message: "Invalid API Token"}
	default:
		return nil, &failure{status: http.StatusForbidden, Code: 9109, Message: "Invalid access token"}
	}
}

// verify answers GET /user/tokens/verify: active or not, never what the token may (API documentation).
func (e *Emulator) verify(c *call) (reply, *failure) {
	return reply{
		result:   map[string]any{"id": c.token.id(), "status": c.token.Status},
		messages: []failure{{Code: 10000, Message: fmt.Sprintf("This API Token is valid and %s", c.token.Status)}},
	}, nil
}

// denied is how most products refuse a token without the permission (wrangler-action 112, mailflare 1).
func denied() *failure {
	return &failure{status: http.StatusForbidden, Code: 10000, Message: "Authentication error"}
}
