package declare

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// Who may store how much (G8): one token, of the store's quota, half. Admins are not bounded by it.
const (
	shareOfQuota = 2
	// nearShare is the part of a share from whose last one on a token's writes run alone: what
	// others, of other replicas too, write for it at the same time is not counted yet.
	nearShare = 4
)

// counted says for whom what a plan declares is to count: its author, or, where he has no room
// for it and it does not grow, whose it was. It refuses what would take him beyond his share.
func (d *Declarer) counted(ctx context.Context, lock *store.Lock, p plan, dry bool) (token string, err error) {
	if p.by.Scope == fleet.ScopeAdmin || p.by.ID == "" || p.write == nil {
		return p.by.ID, nil
	}
	tx := d.records.BeginAt(d.now())
	tx.DeclaredBy(p.by.ID)
	p.write(tx)
	before, after := tx.Counts()
	more, share := after.Bytes, d.records.Quota(ctx)/shareOfQuota
	if before.By == p.by.ID {
		more -= before.Bytes
	}
	free := func() int64 { return share - d.view.Stored(p.by.ID).Bytes }
	switch {
	case share == 0 || more <= 0 || more <= free()-share/nearShare:
		return p.by.ID, nil
	case dry:
	case !lock.Alone():
		return "", errLost
	default:
		if err := d.catchUp(ctx); err != nil {
			return "", err
		}
	}
	switch {
	case more <= free():
		return p.by.ID, nil
	case after.Bytes <= before.Bytes:
		return before.By, nil
	}
	has := d.view.Stored(p.by.ID)
	return "", fleet.Errorf(fleet.CodeConflict,
		"token %q (%s) has %s of the store in %d objects, this counts for %s more, and one token may have %s, half of the store's quota; "+
			"delete or shrink what is not needed, divide it among several tokens, or declare it with one of scope admin (kurad token create)",
		p.by.Name, p.by.ID, inBytes(has.Bytes), has.Objects, inBytes(more), inBytes(share))
}

func inBytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
