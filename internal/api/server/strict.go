package server

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// checkShape compares a decoded value with the type it is for.
func checkShape(wrong *fleet.Invalid, at string, value any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil { // null: as if it were left out
		return
	}
	if text, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler); ok {
		s, isText := value.(string)
		if !isText {
			wrong.Add(at, "must be text, not %s", kindOf(value))
		} else if err := text.UnmarshalText([]byte(s)); err != nil {
			wrong.Add(at, "%v", err)
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		object, ok := value.(map[string]any)
		if !ok {
			wrong.Add(at, "must be an object, not %s", kindOf(value))
			return
		}
		fields := map[string]reflect.Type{}
		collectFields(fields, t)
		for _, name := range sortedKeys(object) {
			field, known := fields[name]
			if !known {
				wrong.Add(at+"/"+escapePointer(name), "is not a field kurad knows; the fields here are %s", strings.Join(sortedKeys(fields), ", "))
				continue
			}
			checkShape(wrong, at+"/"+escapePointer(name), object[name], field)
		}
	case reflect.Map:
		object, ok := value.(map[string]any)
		if !ok {
			wrong.Add(at, "must be an object, not %s", kindOf(value))
			return
		}
		for _, name := range sortedKeys(object) {
			if object[name] == nil {
				wrong.Add(at+"/"+escapePointer(name), "must not be null; leave the key out instead")
				continue
			}
			checkShape(wrong, at+"/"+escapePointer(name), object[name], t.Elem())
		}
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			wrong.Add(at, "must be a list, not %s", kindOf(value))
			return
		}
		for i, item := range list {
			checkShape(wrong, at+"/"+strconv.Itoa(i), item, t.Elem())
		}
	case reflect.String:
		if _, ok := value.(string); !ok {
			wrong.Add(at, "must be text, not %s", kindOf(value))
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			wrong.Add(at, "must be true or false, not %s", kindOf(value))
		}
	case reflect.Int, reflect.Int64:
		n, ok := value.(json.Number)
		if !ok {
			wrong.Add(at, "must be a whole number, not %s", kindOf(value))
		} else if _, err := strconv.ParseInt(n.String(), 10, 64); err != nil {
			wrong.Add(at, "must be a whole number, not %s", n)
		}
	case reflect.Float64:
		n, ok := value.(json.Number)
		if !ok {
			wrong.Add(at, "must be a number, not %s", kindOf(value))
		} else if _, err := n.Float64(); err != nil {
			wrong.Add(at, "is out of range: %s", n)
		}
	}
}

// collectFields gathers the JSON names of a struct, embedded ones included.
func collectFields(into map[string]reflect.Type, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			collectFields(into, f.Type)
		case f.IsExported() && name != "-" && name != "":
			into[name] = f.Type
		}
	}
}

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

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
