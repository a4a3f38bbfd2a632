package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func kubernetesAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Servers are `KuraInstance` resources of a Kubernetes cluster. Exactly one of `kubernetes` and `containers` is set.",
		Attributes: map[string]schema.Attribute{
			"cluster":         requiredText("Name of a cluster that the daemon was given, such as `prod-eu`. Its credentials are the daemon's."),
			"namespace":       optionalText("Namespace of the instances. Default `kura`."),
			"image":           requiredText("Image of the servers, such as `registry.example.dev/kura/cache:{image_tag}`; without a tag, the server's is appended."),
			"replicas":        optionalNumber("Replicas of each server, such as `3`. Default: left to the cluster's controller.", int64validator.AtLeast(1)),
			"ingress_class":   optionalText("Ingress class of the hosts, such as `nginx`. Default: the cluster's."),
			"node_selector":   textMap("Labels that nodes must have, such as `{ pool = \"cache\" }`. Default: none."),
			"env":             textMap("Variables of the servers, such as `{ CACHE_GB = \"200\" }`. Default: none. Secrets belong into `env_from`."),
			"env_from":        textList("Names of sets of variables that the daemon was given, such as `[\"tracing\"]`; a later one wins over an earlier one. Default: none."),
			"extra_spec":      optionalText("Further fields of the instance's spec as JSON, such as `jsonencode({ peers = 2 })`. Default: none."),
			"force_conflicts": off("Whether fields that another manager of the resource holds are taken over instead of reported."),
			"delete_orphans":  off("Whether instances with our labels that nobody declares any more are deleted instead of listed."),
			"storage": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "Volume of each replica. Default: left to the cluster's controller.",
				Attributes: map[string]schema.Attribute{
					"class": optionalText("Storage class, such as `fast`. Default: the cluster's."),
					"size":  optionalText("Size with its unit, such as `200Gi`. Default: the controller's."),
				},
			},
			"tolerations": schema.ListNestedAttribute{
				Optional:            true,
				MarkdownDescription: "Taints of nodes that the servers tolerate. Default: none.",
				Validators:          []validator.List{listvalidator.NoNullValues()},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"key":      optionalText("Key of the taint, such as `dedicated`. Required unless `operator` is `Exists`."),
					"operator": optionalText("`Equal` (the default) or `Exists`.", "Equal", "Exists"),
					"value":    optionalText("Value of the taint, such as `cache`. Default: none."),
					"effect":   optionalText("`NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: all.", "NoSchedule", "PreferNoSchedule", "NoExecute"),
				}},
			},
		},
	}
}

func textList(description string) schema.ListAttribute {
	return schema.ListAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.List{listvalidator.NoNullValues()},
	}
}
