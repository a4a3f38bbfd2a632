package declare

import (
	"context"
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// namespaceWithin bounds the look at a namespace.
const namespaceWithin = 5 * time.Second

// AcceptNamespace makes what is there now the one that is observed (K9): the very one that
// its author was shown.
func (d *Declarer) AcceptNamespace(ctx context.Context, shown fleet.KubeIdentity) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	what := fmt.Sprintf("namespace %s of cluster %s", shown.Namespace, shown.Cluster)
	look, done := context.WithTimeout(ctx, namespaceWithin)
	defer done()
	seen, err := d.runtimes.NamespaceUID(look, shown.Cluster, shown.Namespace)
	if err != nil {
		return err
	}
	if seen != shown.UID {
		return fleet.Errorf(fleet.CodeConflict, "%s has the UID %q now, and not %q; look at it again (kurad cluster list)", what, seen, shown.UID)
	}
	return Retry(func() error {
		prev, err := present(d.records.Identity(ctx, shown.Cluster, shown.Namespace))
		switch {
		case err != nil:
			return err
		case !prev.Exists():
			return fleet.Errorf(fleet.CodeNotFound, "%s was not observed yet, so there is nothing to accept", what)
		case prev.Value.UID == seen:
			return nil
		}
		tx := d.records.Begin()
		if shown.Since = d.now().UTC(); seen == "" {
			tx.DeleteIdentity(prev)
		} else {
			tx.PutIdentity(prev, shown)
		}
		_, err = tx.Commit(ctx)
		return err
	})
}
