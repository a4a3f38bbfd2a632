package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NewerFields are the spec fields that older controllers' CRDs do not have.
var NewerFields = []string{
	"clientHostAliases", "globalPublicHost", "globalGrpcPublicHost", "cloudflarePoolLatitude", "cloudflarePoolLongitude",
	"podAnnotations", "private", "exposeNodePort", "mesh",
}

const (
	instancesPath = "/apis/kura.tuist.dev/v1alpha1/kurainstances"
	schemaPath    = "/openapi/v3/apis/kura.tuist.dev/v1alpha1"
)

// InstallCRD installs the KuraInstance resource, without some fields of its spec, or
// changes the one that is there; instances stay. It returns when the server serves the
// resource and publishes the schema.
func (s *Server) InstallCRD(ctx context.Context, without ...string) error {
	objects, err := Manifests("crd.yaml")
	if err != nil {
		return err
	}
	fields, err := specFields(objects[0])
	if err != nil {
		return err
	}
	for _, name := range without {
		if _, has := fields[name]; !has {
			return fmt.Errorf("install the CRD without %s: it has no such field", name)
		}
		delete(fields, name)
	}
	if err := s.apply(ctx, objects[0]); err != nil {
		return err
	}
	if err := poll(ctx, readyWithin, func() error { return s.serves(ctx, fields) }); err != nil {
		return fmt.Errorf("install the CRD: %w", err)
	}
	return nil
}

// RemoveCRD removes the resource, and with it every instance. It returns when the server
// does not know the type any more.
func (s *Server) RemoveCRD(ctx context.Context) error {
	objects, err := Manifests("crd.yaml")
	if err != nil {
		return err
	}
	client, err := s.resource(objects[0])
	if err != nil {
		return err
	}
	if err := client.Delete(ctx, objects[0].GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the CRD: %w", err)
	}
	err = poll(ctx, readyWithin, func() error {
		if _, err := client.Get(ctx, objects[0].GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is still there"), err)
		}
		code, _, err := s.get(ctx, instancesPath)
		if err == nil && code != http.StatusNotFound {
			err = fmt.Errorf("a list of instances answers %d", code)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the CRD: %w", err)
	}
	return nil
}

// specFields returns the properties of spec, to be changed in place.
func specFields(crd *unstructured.Unstructured) (map[string]any, error) {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		return nil, fmt.Errorf("crd.yaml: want one version: %w", err)
	}
	// NestedSlice copies, so the copy is put back before anybody changes it.
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		return nil, err
	}
	list, _, err := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	if err != nil {
		return nil, err
	}
	one, ok := list.([]any)[0].(map[string]any)
	if !ok {
		return nil, errors.New("crd.yaml: the version is no object")
	}
	fields, _, err := unstructured.NestedFieldNoCopy(one, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if m, ok := fields.(map[string]any); ok {
		return m, nil
	}
	return nil, fmt.Errorf("crd.yaml: no properties of spec: %w", err)
}

// serves says whether instances can be listed and the published schema has exactly these
// fields.
func (s *Server) serves(ctx context.Context, fields map[string]any) error {
	code, _, err := s.get(ctx, instancesPath)
	if err != nil || code != http.StatusOK {
		return fmt.Errorf("a list of instances answers %d: %w", code, err)
	}
	code, body, err := s.get(ctx, schemaPath)
	if err != nil || code != http.StatusOK {
		return fmt.Errorf("the schema answers %d: %w", code, err)
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Properties map[string]json.RawMessage `json:"properties"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return err
	}
	published := document.Components.Schemas["dev.tuist.kura.v1alpha1.KuraInstance"].Properties["spec"].Properties
	for name := range published {
		if _, want := fields[name]; !want {
			return fmt.Errorf("the published schema still has %s", name)
		}
	}
	if len(published) != len(fields) {
		return fmt.Errorf("the published schema has %d fields, want %d", len(published), len(fields))
	}
	return nil
}
