// Writes docs/ from the provider's schema and templates/. Only ../build.sh builds it.
module github.com/kurafleet/terraform-provider-kura/internal/tools/tfplugindocs

go 1.26.0

tool github.com/hashicorp/terraform-plugin-docs/cmd/tfplugindocs

require github.com/hashicorp/terraform-plugin-docs v0.25.0
