package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
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

func textList(description string) schema.ListAttribute {
	return schema.ListAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.List{listvalidator.NoNullValues()},
	}
}

func optionalObject(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: attributes}
}

func optionalObjectList(description string, attributes map[string]schema.Attribute) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Optional: true, MarkdownDescription: description, NestedObject: schema.NestedAttributeObject{Attributes: attributes},
		Validators: []validator.List{listvalidator.NoNullValues()},
	}
}

// optionalObjectMap is of objects by their names.
func optionalObjectMap(description string, attributes map[string]schema.Attribute) schema.MapNestedAttribute {
	return schema.MapNestedAttribute{
		Optional: true, MarkdownDescription: description, NestedObject: schema.NestedAttributeObject{Attributes: attributes},
		Validators: []validator.Map{mapvalidator.NoNullValues()},
	}
}

func requiredPort(description string) schema.Int64Attribute {
	return schema.Int64Attribute{Required: true, MarkdownDescription: description, Validators: []validator.Int64{ports()}}
}

func ports() validator.Int64 { return int64validator.Between(1, 65535) }

// coordinate is in degrees.
func coordinate(description string, most float64) schema.Float64Attribute {
	return schema.Float64Attribute{Required: true, MarkdownDescription: description, Validators: []validator.Float64{float64validator.Between(-most, most)}}
}

// processors is a limit of processor time.
func processors(description string) schema.Float64Attribute {
	return schema.Float64Attribute{Optional: true, MarkdownDescription: description, Validators: []validator.Float64{float64validator.AtLeast(0.01)}}
}

func labels(of string) schema.MapAttribute {
	return textMap("Labels of the " + of + ", for people and filters; they change nothing that runs. Example: `{ team = \"build\" }`. Default: none.")
}

func deletionProtection(of string) schema.BoolAttribute {
	return off("Whether a plan that destroys the " + of + " is refused. The daemon stores it, so it binds everybody; set it to `false` and apply before destroying.")
}

// filled refuses "": nothing is said by leaving an attribute out.
func filled() []validator.String { return []validator.String{stringvalidator.LengthAtLeast(1)} }
