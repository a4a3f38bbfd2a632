package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Users that the server knows by a token.
const (
	Admin      = "admin"                            // may do everything
	Kurad      = "system:serviceaccount:kura:kurad" // may do what examples/kubernetes/rbac.yaml says
	Controller = "kura-controller"                  // the stand-in; may do everything
	Other      = "other"                            // a person or another tool; may do everything
	Nobody     = "nobody"                           // may read the schema
)

const masters = "system:masters"

var users = map[string][]string{
	Admin:      {masters},
	Kurad:      {"system:serviceaccounts", "system:serviceaccounts:kura"},
	Controller: {masters},
	Other:      {masters},
	Nobody:     nil,
}

// token is what a user of the server shows. It is worth nothing anywhere else.
func token(user string) string { return "token-of-" + strings.ReplaceAll(user, ":", "-") }

// tokens is the file that --token-auth-file names.
func tokens() []byte {
	var b []byte
	for user, groups := range users {
		b = fmt.Appendf(b, "%s,%s,%s,%q\n", token(user), user, user, strings.Join(groups, ","))
	}
	return b
}

// REST is how a user reaches the server. One whom it does not know by a token is
// impersonated, with the groups.
func (s *Server) REST(user string, groups ...string) *rest.Config {
	c := &rest.Config{
		Host: "https://" + s.host, BearerToken: token(user), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.ca.PEM()},
	}
	if _, known := users[user]; !known {
		c.BearerToken = token(Admin)
		c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: slices.Concat(groups, []string{"system:authenticated"})}
	}
	return c
}

// Kubeconfig writes a file by which a user with a token reaches the server. Its only
// context has the name Context.
func (s *Server) Kubeconfig(user string) (string, error) { return s.kubeconfig(user, s.host) }

// Context is the name of the context of every kubeconfig that this package writes.
const Context = "test"

func (s *Server) kubeconfig(user, address string) (string, error) {
	if _, known := users[user]; !known {
		return "", fmt.Errorf("write a kubeconfig: %s has no token", user)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[Context] = &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthorityData: s.ca.PEM()}
	config.AuthInfos[Context] = &clientcmdapi.AuthInfo{Token: token(user)}
	config.Contexts[Context] = &clientcmdapi.Context{Cluster: Context, AuthInfo: Context, Namespace: Namespace}
	config.CurrentContext = Context
	dir, err := os.MkdirTemp(s.dir, "kubeconfig-")
	if err != nil {
		return "", fmt.Errorf("write a kubeconfig: %w", err)
	}
	path := filepath.Join(dir, "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write a kubeconfig: %w", err)
	}
	return path, nil
}
