package fleet

// ExampleHost renders the host that account "acme" would have in cluster and region
// "eu-central": what daemon and provider both show of a host template. It is "" where
// the pattern cannot be rendered.
func (e Environment) ExampleHost(pattern string) string {
	host, err := e.RenderHost(pattern, HostInput{AccountHandle: "acme", ClusterID: "eu-central", Region: "eu-central"})
	if err != nil {
		return ""
	}
	return host
}
