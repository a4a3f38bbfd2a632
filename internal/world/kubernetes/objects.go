package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Instances is the resource of KuraInstances.
var Instances = schema.GroupVersionResource{Group: fleet.KubeGroup, Version: fleet.KubeVersion, Resource: fleet.KubeResource}

// Dynamic returns a client that acts as user.
func (s *Server) Dynamic(user string) (dynamic.Interface, error) {
	return dynamic.NewForConfig(s.REST(user))
}

// CreateNamespace makes a namespace, where it is not there.
func (s *Server) CreateNamespace(ctx context.Context, name string) error {
	return s.apply(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}})
}

// Grant gives kurad, in a namespace, the rights of examples/kubernetes/rbac.yaml.
func (s *Server) Grant(ctx context.Context, namespace string) error {
	return s.rights(ctx, namespace, s.apply)
}

// Revoke takes them away.
func (s *Server) Revoke(ctx context.Context, namespace string) error {
	return s.rights(ctx, namespace, func(ctx context.Context, o *unstructured.Unstructured) error {
		client, err := s.resource(o)
		if err != nil {
			return err
		}
		if err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", o.GetKind(), err)
		}
		return nil
	})
}

// rights does something with the Role and the RoleBinding, and waits until the server,
// which learns of its own rights by a watch, judges by them.
func (s *Server) rights(ctx context.Context, namespace string, do func(context.Context, *unstructured.Unstructured) error) error {
	objects, err := Manifests("rbac.yaml")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "ServiceAccount" {
			continue
		}
		o.SetNamespace(namespace)
		if err := do(ctx, o); err != nil {
			return fmt.Errorf("rights of kurad in %s: %w", namespace, err)
		}
	}
	client, err := s.Dynamic(Admin)
	if err != nil {
		return err
	}
	reviews := client.Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"})
	binding, err := client.Resource(bindings).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kurad"})
	if err != nil {
		return err
	}
	allowed := len(binding.Items) > 0
	return poll(ctx, readyWithin, func() error {
		review, err := reviews.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{"user": Kurad, "resourceAttributes": map[string]any{
				"group": fleet.KubeGroup, "resource": fleet.KubeResource, "verb": "patch", "namespace": namespace,
			}},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if now, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); now != allowed {
			return fmt.Errorf("kurad may patch instances in %s: %t, want %t", namespace, now, allowed)
		}
		return nil
	})
}

var bindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}

// plurals are the resources of the kinds that the examples use.
var plurals = map[string]string{
	"Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "Service": "services", "StatefulSet": "statefulsets",
	"Role": "roles", "RoleBinding": "rolebindings", "ConfigMap": "configmaps", "Secret": "secrets", "NetworkPolicy": "networkpolicies",
	"PersistentVolumeClaim": "persistentvolumeclaims", "CustomResourceDefinition": "customresourcedefinitions", fleet.KubeKind: fleet.KubeResource,
}

// resource returns the client, as admin, of an object's resource and namespace.
func (s *Server) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	plural, known := plurals[o.GetKind()]
	if !known {
		return nil, fmt.Errorf("the plural of kind %s is not known here: add it to plurals", o.GetKind())
	}
	client, err := s.Dynamic(Admin)
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(o.GetAPIVersion())
	if err != nil {
		return nil, err
	}
	all := client.Resource(gv.WithResource(plural))
	if o.GetNamespace() == "" {
		return all, nil
	}
	return all.Namespace(o.GetNamespace()), nil
}

func (s *Server) apply(ctx context.Context, o *unstructured.Unstructured) error {
	_, err := s.Apply(ctx, o, metav1.ApplyOptions{FieldManager: "world", Force: true})
	return err
}

// Apply applies any object of the examples as admin.
func (s *Server) Apply(ctx context.Context, o *unstructured.Unstructured, options metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	client, err := s.resource(o)
	if err != nil {
		return nil, err
	}
	echo, err := client.Apply(ctx, o.GetName(), o, options)
	if err != nil {
		return nil, fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return echo, nil
}

// Manifests reads the objects of a file of examples/kubernetes.
func Manifests(file string) ([]*unstructured.Unstructured, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "examples", "kubernetes", file))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for i, document := range bytes.Split(text, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &o.Object); err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", file, i, err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// moduleRoot is the folder of go.mod: tests run in their package's, the demo in any.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
	}
	return "", errors.Join(err, errors.New("no folder above has a go.mod: run it in the module"))
}

// get asks the server as admin, for what no dynamic client gets. The time of an answer is
// bounded.
func (s *Server) get(ctx context.Context, path string) (code int, body []byte, err error) {
	client, err := rest.HTTPClientFor(s.admin)
	if err != nil {
		return 0, nil, err
	}
	defer client.CloseIdleConnections()
	client.Timeout = 10 * time.Second
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.admin.Host+path, nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}
