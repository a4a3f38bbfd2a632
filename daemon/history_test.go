package main

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
)

// said is an operation of a history that is written by hand, at times from and to.
func said(from, to int64, c apiCall, a apiAnswer) porcupine.Operation {
	return porcupine.Operation{Call: from, Return: to, Input: c, Output: a}
}

// A checker that accepts everything would hold no promise: these are histories that a
// kurad must not have, each next to the like that it may have.
func TestG1_theCheckerTellsWhatAKuradMayAnswer(t *testing.T) {
	var (
		get      = apiCall{Verb: verbGet}
		remove   = apiCall{Verb: verbDelete}
		put      = func(image string) apiCall { return apiCall{Verb: verbPut, Image: image} }
		putIf    = func(image string, g int64) apiCall { return apiCall{Verb: verbPut, Image: image, IfMatch: g} }
		create   = func(image string) apiCall { return apiCall{Verb: verbPut, Image: image, CreateOnly: true} }
		redeploy = func(key string) apiCall { return apiCall{Verb: verbRedeploy, Key: key} }
		status   = func(s int) apiAnswer { return apiAnswer{Status: s} }
		is       = func(image string, g, seq int64) apiAnswer {
			return apiAnswer{Status: 200, Image: image, Generation: g, Seq: seq}
		}
		created  = apiAnswer{Status: 201, Image: "v1", Generation: 1, Seq: 1, Changed: true}
		changed  = func(image string, g, seq int64) apiAnswer { a := is(image, g, seq); a.Changed = true; return a }
		redone   = func(image string, g, seq int64) apiAnswer { a := is(image, g, seq); a.Status = 201; return a }
		deleting = func(image string, g, seq int64) apiAnswer { a := is(image, g, seq); a.Deleting = true; return a }
		leaves   = func(image string, g, seq int64) apiAnswer {
			a := is(image, g, seq)
			a.Status, a.Deleting = 202, true
			return a
		}
		none      = apiAnswer{}
		forEver   = int64(math.MaxInt64)
		begins    = said(1, 2, put("v1"), created)
		overwrite = said(3, 4, put("v2"), changed("v2", 2, 2))
	)
	for _, tt := range []struct {
		name string
		good bool
		ops  []porcupine.Operation
	}{
		{"a write that is read", true, []porcupine.Operation{begins, overwrite, said(5, 6, get, is("v2", 2, 2))}},
		{"a write that is lost", false, []porcupine.Operation{begins, overwrite, said(5, 6, get, is("v1", 1, 1))}},
		{"a creation that is lost", false, []porcupine.Operation{begins, said(3, 4, get, status(404))}},
		{"a read during a write", true, []porcupine.Operation{begins, said(3, 6, put("v2"), changed("v2", 2, 2)), said(4, 5, get, is("v1", 1, 1))}},
		{"a stale read: another one saw the write", false, []porcupine.Operation{
			begins, said(3, 9, put("v2"), changed("v2", 2, 2)), said(4, 5, get, is("v2", 2, 2)), said(6, 7, get, is("v1", 1, 1)),
		}},
		{"one of two creations is refused", true, []porcupine.Operation{said(1, 4, create("v1"), created), said(2, 3, create("v1"), status(409))}},
		{"two creations succeed", false, []porcupine.Operation{said(1, 4, create("v1"), created), said(2, 3, create("v1"), created)}},
		{"one generation given twice", false, []porcupine.Operation{begins, said(3, 6, put("v2"), changed("v2", 2, 2)), said(4, 5, put("v3"), changed("v3", 2, 2))}},
		{"a condition that holds", true, []porcupine.Operation{begins, said(3, 4, putIf("v2", 1), changed("v2", 2, 2))}},
		{"a condition that holds, and is refused", false, []porcupine.Operation{begins, said(3, 4, putIf("v2", 1), status(412))}},
		{"a condition that does not hold", false, []porcupine.Operation{begins, overwrite, said(5, 6, putIf("v3", 1), changed("v3", 3, 3))}},
		{"both of two that name one generation", false, []porcupine.Operation{
			begins, said(3, 6, putIf("v2", 1), changed("v2", 2, 2)), said(4, 5, putIf("v3", 1), changed("v3", 3, 3)),
		}},
		{"an unanswered write that had its effect", true, []porcupine.Operation{begins, said(3, forEver, put("v2"), none), said(5, 6, get, is("v2", 2, 2))}},
		{"an unanswered write that had none", true, []porcupine.Operation{begins, said(3, forEver, put("v2"), none), said(5, 6, get, is("v1", 1, 1))}},
		{"an unanswered write that comes late", true, []porcupine.Operation{
			begins, said(3, forEver, put("v2"), none), said(5, 6, get, is("v1", 1, 1)), said(7, 8, get, is("v2", 2, 2)),
		}},
		{"an unanswered write that outlives its daemon", false, []porcupine.Operation{
			begins, said(3, 4, put("v2"), none), said(5, 6, get, is("v1", 1, 1)), said(7, 8, get, is("v2", 2, 2)),
		}},
		{"an unanswered write that is undone", false, []porcupine.Operation{
			begins, said(3, forEver, put("v2"), none), said(5, 6, get, is("v2", 2, 2)), said(7, 8, get, is("v1", 1, 1)),
		}},
		{"a write that nobody asked for", false, []porcupine.Operation{begins, said(3, 4, get, is("v2", 2, 2))}},
		{"an equal write changes nothing", true, []porcupine.Operation{begins, said(3, 4, put("v1"), is("v1", 1, 1))}},
		{"an equal write shows another's", false, []porcupine.Operation{begins, said(3, 6, put("v1"), is("v2", 2, 2)), said(4, 5, put("v2"), changed("v2", 2, 2))}},
		{"one redeploy by its key", true, []porcupine.Operation{
			begins, said(3, 4, redeploy("a"), redone("v1", 2, 2)), overwriteAt(5, 3, 3), said(7, 8, redeploy("a"), is("v1", 2, 2)),
		}},
		{"an unanswered redeploy that is asked for again", true, []porcupine.Operation{begins, said(3, 4, redeploy("a"), none), said(5, 6, redeploy("a"), is("v1", 2, 2))}},
		{"two redeploys by one key", false, []porcupine.Operation{begins, said(3, 4, redeploy("a"), redone("v1", 2, 2)), said(5, 6, redeploy("a"), redone("v1", 3, 3))}},
		{"a server that is destroyed, and declared anew", true, []porcupine.Operation{
			begins, said(3, 4, remove, leaves("v1", 2, 1)), said(5, 6, put("v2"), status(409)), said(7, 8, get, deleting("v1", 2, 1)),
			said(9, 10, get, status(404)), said(11, 12, redeploy("a"), status(404)), said(13, 14, put("v1"), created),
		}},
		{"a write to a server that is being destroyed", false, []porcupine.Operation{begins, said(3, 4, remove, leaves("v1", 2, 1)), said(5, 6, put("v2"), changed("v2", 3, 2))}},
		{"a server that is there again by itself", false, []porcupine.Operation{
			begins, said(3, 4, remove, leaves("v1", 2, 1)), said(5, 6, get, status(404)), said(7, 8, get, deleting("v1", 2, 1)),
		}},
		{"a destruction that is forgotten", false, []porcupine.Operation{begins, said(3, 4, remove, leaves("v1", 2, 1)), said(5, 6, get, is("v1", 1, 1))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := porcupine.CheckOperations(serverModel(), tt.ops); got != tt.good {
				t.Errorf("accepted: %v, want %v", got, tt.good)
			}
		})
	}
}

// overwriteAt declares v2 at a time, and gets a generation and a deployment.
func overwriteAt(at, generation, seq int64) porcupine.Operation {
	return said(at, at+1, apiCall{Verb: verbPut, Image: "v2"}, apiAnswer{Status: 200, Image: "v2", Generation: generation, Seq: seq, Changed: true})
}
