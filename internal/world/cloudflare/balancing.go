package cloudflare

import (
	"encoding/json"
	"net/http"
	"time"
)

// Object is what pools and load balancers have in common.
type Object struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	CreatedOn   time.Time `json:"created_on"`
	ModifiedOn  time.Time `json:"modified_on"`
}

// begin gives a new object its identifier, and one that is changed that of before with when it was made.
func (o *Object) begin(e *Emulator, kind string, before *Object) {
	now := e.now().UTC()
	o.ID, o.CreatedOn = "", now
	if before != nil {
		o.ID, o.CreatedOn = before.ID, before.CreatedOn
	} else {
		o.ID = e.newID(kind)
	}
	o.ModifiedOn = now
}

// read reads a body into a value that has its defaults: over all that was said before where it is a PATCH.
func (c *call) read(before, into any) *failure {
	var said map[string]json.RawMessage
	if fail := c.decode(&said); fail != nil {
		return fail
	}
	merged := map[string]json.RawMessage{}
	if c.Method == http.MethodPatch {
		old, err := json.Marshal(before)
		if err != nil || json.Unmarshal(old, &merged) != nil {
			panic("an object of ours that is no JSON")
		}
	}
	for field, value := range said {
		merged[field] = value
	}
	whole, err := json.Marshal(merged)
	if err != nil || json.Unmarshal(whole, into) != nil {
		return rejected(http.StatusBadRequest, "the request body does not have the types of the documentation")
	}
	return nil
}

// rejected is the answer of the load balancing API to what it does not take: quotas, missing subscriptions and
// mistakes alike (hashicorp/terraform 17948; ingress-controller 18).
func rejected(status int, text string) *failure {
	return &failure{status: status, Code: 1002, Message: text + ": validation failed"}
}

// The other answers of that API: not found (1001), a name that is taken (1003: terraform-provider-cloudflare 6275) and
// what is still used (1005: cloudflare-docs 3686).
func notFound(kind string) *failure {
	return &failure{status: http.StatusNotFound, Code: 1001, Message: kind + " not found"}
}

func taken() *failure { return invalid(1003, "value not unique") }

func referenced() *failure {
	return invalid(1005, "This object is referenced by other objects, delete them first.")
}

// withoutSubscription is how a pool is refused where the account has no load balancing, or none left.
func withoutSubscription() *failure {
	return rejected(http.StatusBadRequest, "the origin list length must be in range [1, 0]")
}

// whole answers a list that has no pages (cloudflare-go: SinglePage).
func whole[T any](c *call, all []T) reply {
	all, total := lie(c, all)
	return reply{result: all, info: &resultInfo{Page: 1, PerPage: max(total, 1), Count: len(all), TotalCount: total, TotalPages: 1}}
}
