package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

func kubernetesAttribute() schema.SingleNestedAttribute {
	return optionalObject("Servers are `KuraInstance` resources of a Kubernetes cluster; [the guide](../guides/kubernetes.md) says what is written and what is left alone. Exactly one of `kubernetes` and `containers` is set.", map[string]schema.Attribute{
		"cluster":         requiredText("Name of a cluster that the daemon was given, such as `prod-eu`. Its credentials are the daemon's. It cannot change while the region has servers."),
		"namespace":       optionalText("Namespace of the instances, such as `kura-staging`. It cannot change while the region has servers. Default `kura`."),
		"image":           requiredText("Image of the servers, such as `registry.example.dev/kura/cache:{image_tag}`; without a tag, the server's is appended."),
		"replicas":        optionalNumber("Replicas of each server, such as `3`. Default: left to the cluster's controller.", int64validator.AtLeast(1)),
		"ingress_class":   optionalText("Ingress class of the hosts, such as `nginx`. Default: the cluster's."),
		"node_selector":   textMap("Labels that nodes must have, such as `{ pool = \"cache\" }`. Default: none."),
		"env":             textMap("Variables of the servers, such as `{ CACHE_GB = \"200\" }`. Whoever can list the instances reads them; secrets belong into `env_from`. Default: none."),
		"env_from":        textList("Names of sets of variables that the daemon was given, such as `[\"tracing\"]`. Each variable becomes a reference to the key of its name in the Secret of the set's name; no value is written. A later set wins over an earlier one, `env` over all. Default: none."),
		"extra_spec":      optionalText("Further fields of the instance's spec as a JSON object, such as `jsonencode({ mesh = { enabled = true } })`: those that the cluster knows and the provider does not. A field that has an attribute is refused. Default: none."),
		"force_conflicts": off("Whether fields that another manager applied with another value are taken over. If not, they are left alone and a plan warns of them."),
		"delete_orphans":  off("Whether instances with this environment's labels that belong to no declared server are deleted, once they have been there for the daemon's `--orphan-period` (24 hours by default). If not, `kurad orphans` lists them."),
		"storage": optionalObject("Volume of each replica. Default: left to the cluster's controller.", map[string]schema.Attribute{
			"class": optionalText("Storage class, such as `fast`. Default: the cluster's."),
			"size":  optionalText("Size with its unit, such as `200Gi`. Default: the controller's."),
		}),
		"tolerations": optionalObjectList("Taints of nodes that the servers tolerate. Default: none.", map[string]schema.Attribute{
			"key":      optionalText("Key of the taint, such as `dedicated`. Required unless `operator` is `Exists`."),
			"operator": optionalText("`Equal` (the default) or `Exists`.", "Equal", "Exists"),
			"value":    optionalText("Value of the taint, such as `cache`. Default: none."),
			"effect":   optionalText("`NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: all.", "NoSchedule", "PreferNoSchedule", "NoExecute"),
		}),
	})
}
