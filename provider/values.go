package provider

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// text is null for "": the API leaves out what is not set.
func text(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// orEmpty is never null, so that a lookup in it is no error.
func orEmpty[V any](in map[string]V) map[string]V {
	if in == nil {
		return map[string]V{}
	}
	return in
}

// The generation of an object is kept in private state: it is what the plan saw, and
// what a write compares (If-Match).
const generationKey = "generation"

type privateReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type privateWriter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func keepGeneration(ctx context.Context, private privateWriter, generation int64) diag.Diagnostics {
	return private.SetKey(ctx, generationKey, strconv.AppendInt(nil, generation, 10))
}

// plannedGeneration returns the generation that the plan saw; 0 where there is none.
func plannedGeneration(ctx context.Context, private privateReader) int64 {
	b, _ := private.GetKey(ctx, generationKey)
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return n
}
