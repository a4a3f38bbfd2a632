package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Attributes that several resources share, and the few shapes that all others have.

// name is a required attribute of an object's identity: another value is another object.
func name(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Required: true, MarkdownDescription: description,
		PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
		Validators:    filled(),
	}
}

func requiredText(description string) schema.StringAttribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: description, Validators: filled()}
}

// optionalText is an optional string, one of a set where one is given.
func optionalText(description string, oneOf ...string) schema.StringAttribute {
	a := schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: filled()}
	if len(oneOf) > 0 {
		a.Validators = []validator.String{stringvalidator.OneOf(oneOf...)}
	}
	return a
}

func optionalDuration(description string) schema.StringAttribute {
	return schema.StringAttribute{
		CustomType: durationType{}, Optional: true, MarkdownDescription: description,
		PlanModifiers: []planmodifier.String{keepDuration()},
	}
}

func optionalNumber(description string, checks ...validator.Int64) schema.Int64Attribute {
	return schema.Int64Attribute{Optional: true, MarkdownDescription: description, Validators: checks}
}

// derivedText is computed from the object's own attributes while planning.
func derivedText(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description, PlanModifiers: []planmodifier.String{derived()}}
}

// stableText is computed by the daemon, once.
func stableText(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description, PlanModifiers: []planmodifier.String{stable()}}
}

// off is a switch that is false unless it is set.
func off(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(false), MarkdownDescription: description + " Default `false`."}
}

func textMap(description string) schema.MapAttribute {
	return schema.MapAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.Map{mapvalidator.NoNullValues()},
	}
}

func labels(of string) schema.MapAttribute {
	return textMap("Labels of the " + of + ", for people and filters; they change nothing that runs. Example: `{ team = \"build\" }`. Default: none.")
}

func deletionProtection(of string) schema.BoolAttribute {
	return off("Whether a plan that destroys the " + of + " is refused. The daemon stores it, so it binds everybody; set it to `false` and apply before destroying.")
}

// filled refuses "": nothing is said by leaving an attribute out.
func filled() []validator.String { return []validator.String{stringvalidator.LengthAtLeast(1)} }
