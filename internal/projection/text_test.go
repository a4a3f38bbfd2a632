package projection

import (
	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func diffText(a, b fleet.Status) string { return cmp.Diff(a, b) }
