package provider

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// text is null for "": the API leaves out what is not set.
func text[S ~string](s S) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(string(s))
}

// number is null for 0.
func number(n int) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(n))
}

// decimal is null for 0.
func decimal(f float64) types.Float64 {
	if f == 0 {
		return types.Float64Null()
	}
	return types.Float64Value(f)
}

// texts is never null: a list of nothing is empty.
func texts[S ~string](in []S) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = string(s)
	}
	return out
}

// orEmpty is never null, so that a lookup in it is no error.
func orEmpty(in map[string]string) map[string]string {
	if in == nil {
		return map[string]string{}
	}
	return in
}

// checkConfig runs check on a configuration of which everything is known, and reports
// what it finds at the attributes: `tofu validate` says it, without a daemon.
func checkConfig[M any](ctx context.Context, config tfsdk.Config, what string, check func(M) error, diags *diag.Diagnostics) {
	if !config.Raw.IsFullyKnown() {
		return
	}
	var m M
	diags.Append(config.Get(ctx, &m)...)
	if diags.HasError() {
		return
	}
	if err := check(m); err != nil {
		report(diags, config.Schema.Type(), what, err)
	}
}

// known reports whether none of the values is unknown.
func known(values ...attr.Value) bool {
	for _, v := range values {
		if v.IsUnknown() {
			return false
		}
	}
	return true
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
