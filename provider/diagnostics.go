package provider

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// report adds err as diagnostics: each field that it names at its attribute of t, the
// rest as one error. what is the attempt, such as `Create server acme/eu`.
func report(diags *diag.Diagnostics, t attr.Type, what string, err error) {
	if e, ok := errors.AsType[*wrongDaemon](err); ok {
		diags.AddError(what+": "+lower(e.summary()), e.detail())
		return
	}
	e, ok := errors.AsType[*fleet.Error](err)
	if !ok {
		diags.AddError(what, detail(what, err))
		return
	}
	if len(e.Fields) == 0 {
		step := nextStep(e.Code)
		if a, ok := errors.AsType[*api.Error](err); ok && a.RetryAfter > 0 {
			step = fmt.Sprintf("It asks to be left alone for %s; try again after that.", a.RetryAfter)
		}
		diags.AddError(what, strings.TrimSpace(detail(what, err)+" "+step))
	}
	for _, f := range e.Fields {
		summary := what + ": " + strings.TrimPrefix(f.Pointer, "/") + " is not accepted"
		if p, ok := attributePath(t, f.Pointer); ok {
			diags.AddAttributeError(p, summary, sentence(f.Detail))
		} else {
			diags.AddError(summary, sentence(f.Detail))
		}
	}
}

// nextStep says what a person does about an error of the code, where the daemon's own
// words do not.
func nextStep(code fleet.Code) string {
	switch code {
	case fleet.CodeUnauthorized:
		return "Check `token` or `token_file` of the provider block, " + envToken + " and " + envTokenFile + "; `kurad token list` shows which tokens are valid."
	case fleet.CodeForbidden:
		return "Use a token whose scope covers it: `kurad token create --scope write`."
	case fleet.CodePrecondition:
		return "Somebody else changed it after this plan was made. Plan again, look at what changed, then apply."
	case fleet.CodeInternal:
		return "This is a fault of kurad; its log says more."
	case api.CodeWrongEnvironment:
		return "Nothing was read or written."
	case fleet.CodeInvalid, fleet.CodeNotFound, fleet.CodeConflict, fleet.CodeTooLarge, fleet.CodeUnavailable:
		return ""
	}
	return ""
}

// attributePath returns where in a schema of type t the field at a JSON pointer is.
// A pointer that goes deeper than the schema, or astray, ends at the last attribute
// that both know; ok is false where there is none.
func attributePath(t attr.Type, pointer string) (p path.Path, ok bool) {
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch at := t.(type) {
		case attr.TypeWithAttributeTypes:
			next, known := at.AttributeTypes()[token]
			if !known {
				return p, ok
			}
			if t = next; ok {
				p = p.AtName(token)
			} else {
				p, ok = path.Root(token), true
			}
		case basetypes.MapType:
			t, p = at.ElementType(), p.AtMapKey(token)
		case basetypes.ListType:
			i, err := strconv.Atoi(token)
			if err != nil {
				return p, ok
			}
			t, p = at.ElementType(), p.AtListIndex(i)
		default:
			return p, ok
		}
	}
	return p, ok
}

// detail is err as a sentence, without the attempt where the summary says it already.
func detail(what string, err error) string {
	if rest := err.Error(); len(rest) > len(what) && strings.EqualFold(rest[:len(what)], what) {
		return sentence(strings.TrimPrefix(rest[len(what):], ":"))
	}
	return sentence(err.Error())
}

// sentence writes a text as one: upper case at its start, a full stop at its end.
func sentence(s string) string {
	s = upper(strings.TrimSpace(s))
	if s != "" && !strings.ContainsRune(".!?", rune(s[len(s)-1])) {
		s += "."
	}
	return s
}

// upper writes a text's first letter in upper case, but that of a host, path or key: a name stays
// as it is.
func upper(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if strings.ContainsAny(strings.TrimRight(first, ".:,"), "./_") {
		return s
	}
	for i, r := range s {
		return string(unicode.ToUpper(r)) + s[i+len(string(r)):]
	}
	return s
}

func lower(s string) string {
	for i, r := range s {
		return string(unicode.ToLower(r)) + s[i+len(string(r)):]
	}
	return s
}

// has reports whether err carries a fleet error of the code.
func has(err error, code fleet.Code) bool { return err != nil && fleet.CodeOf(err) == code }

// fields are what err says of single fields.
func fields(err error) []fleet.FieldError {
	if e, ok := errors.AsType[*fleet.Error](err); ok {
		return e.Fields
	}
	return nil
}

// stopped reports whether ctx ended because somebody asked for it (Ctrl-C).
func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), context.Canceled) }
