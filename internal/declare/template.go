package declare

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// Templates declares host templates, each by its name.
func (d *Declarer) Templates() Kind[fleet.HostTemplate] {
	return Kind[fleet.HostTemplate]{
		declarer: d, get: byName(d.records.Template), names: func(t fleet.HostTemplate) []string { return []string{t.Name} },
		named:  func(t fleet.HostTemplate) string { return fmt.Sprintf("host template %q", t.Name) },
		check:  func(t fleet.HostTemplate) error { return t.Validate(d.env) },
		plan:   d.planTemplate,
		remove: (*store.Tx).DeleteTemplate,
		next:   "delete that region first, or let it name another template",
	}
}

func (d *Declarer) planTemplate(ctx context.Context, req Request, prev store.Versioned[fleet.HostTemplate], next fleet.HostTemplate) (p plan, err error) {
	p.write = func(tx *store.Tx) { tx.PutTemplate(prev, next) }
	if !prev.Exists() {
		return p, nil
	}
	if err := d.templateInZones(ctx, next); err != nil {
		return p, err
	}
	err = d.affect(ctx, req, &p, proposal{
		pointer: "/pattern",
		advice:  "choose another pattern, or declare a new template and move regions to it one by one",
		apply: func(g *fleet.Gathered) bool {
			_, uses := g.Templates[next.Name]
			g.Templates[next.Name] = next
			return uses
		},
	})
	return p, err
}
