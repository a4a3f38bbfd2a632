package server

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Body is a request's body of type T. huma only hands it over: what is wrong with it
// is kept until the handler asks, so that every fault carries its pointers.
type Body[T any] struct {
	object T
	err    error
}

// Schema implements huma.SchemaProvider.
func (Body[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

func (b *Body[T]) decode(data []byte) { b.err = decodeStrict(data, &b.object) }

// value returns the object, or what is wrong with the body.
func (b Body[T]) value() (T, error) { return b.object, b.err }

// jsonFormat is huma's JSON format with the strict decoder for bodies.
func jsonFormat() huma.Format {
	return huma.Format{
		Marshal: huma.DefaultJSONFormat.Marshal,
		Unmarshal: func(data []byte, v any) error {
			if b, ok := v.(interface{ decode([]byte) }); ok {
				b.decode(data)
				return nil
			}
			return json.Unmarshal(data, v)
		},
	}
}

// decodeStrict reads one JSON value into v. Unlike encoding/json alone it says of
// every wrong field where it is, and refuses unknown ones, names in another case, and
// anything after the value.
func decodeStrict(data []byte, v any) error {
	var tree any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return fleet.Errorf(fleet.CodeInvalid, "the body is not JSON: %s", jsonReason(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fleet.Errorf(fleet.CodeInvalid, "the body holds more than one JSON value; send one object")
	}
	if _, ok := tree.(map[string]any); !ok {
		return fleet.Errorf(fleet.CodeInvalid, "the body is not a JSON object; send one object")
	}
	var wrong fleet.Invalid
	checkShape(&wrong, "", tree, reflect.TypeOf(v).Elem())
	if err := wrong.Err("the body"); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fleet.Errorf(fleet.CodeInvalid, "the body is not valid: %v", err)
	}
	return nil
}

func jsonReason(err error) string {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("%v at byte %d", s, s.Offset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	return err.Error()
}

// wanted says what JSON value a type is for, in the words of kindOf; "": any.
func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "text"
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "a number"
	}
	return ""
}

// checkShape compares a decoded value with the type it is for.
func checkShape(wrong *fleet.Invalid, at string, value any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	want := wanted(t)
	whole := want == "a number" && t.Kind() != reflect.Float64
	if value == nil || want == "" { // null: as if it were left out
		return
	}
	if got := kindOf(value); got != want {
		if whole {
			want = "a whole number"
		}
		wrong.Add(at, "must be %s, not %s", want, got)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		checkFields(wrong, at, value, t)
	case []any:
		for i, item := range value {
			checkShape(wrong, at+"/"+strconv.Itoa(i), item, t.Elem())
		}
	case string:
		if text, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler); ok {
			if err := text.UnmarshalText([]byte(value)); err != nil {
				wrong.Add(at, "%v", err)
			}
		}
	case json.Number:
		if _, err := strconv.ParseInt(value.String(), 10, 64); whole && err != nil {
			wrong.Add(at, "must be a whole number, not %s", value)
		} else if _, err := value.Float64(); !whole && err != nil {
			wrong.Add(at, "is out of range: %s", value)
		}
	}
}

// checkFields compares an object with a map, or with a struct and the JSON names of its fields.
func checkFields(wrong *fleet.Invalid, at string, object map[string]any, t reflect.Type) {
	fields := map[string]reflect.Type{}
	if t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) { // embedded ones' included
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				fields[name] = f.Type
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		p, value := at+"/"+escapePointer(name), object[name]
		field, known := fields[name]
		switch {
		case known:
			checkShape(wrong, p, value, field)
		case t.Kind() == reflect.Struct:
			wrong.Add(p, "is not a field kurad knows; the fields here are %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		case value == nil:
			wrong.Add(p, "must not be null; leave the key out instead")
		default:
			checkShape(wrong, p, value, t.Elem())
		}
	}
}

// kindOf says what a decoded value is.
func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "true or false"
	}
	return "a number"
}

// escapePointer writes a name as one step of a JSON pointer (RFC 6901).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
