// The OpenTofu that tests, the demo and the docs drive. Only ../build.sh builds it.
module github.com/kurafleet/terraform-provider-kura/internal/tools/tofu

go 1.26.6

tool github.com/opentofu/opentofu/cmd/tofu

require github.com/opentofu/opentofu v1.12.6

// OpenTofu's own replacement, which a module that requires it has to repeat.
replace github.com/hashicorp/hcl/v2 v2.20.1 => github.com/opentofu/hcl/v2 v2.20.2-0.20251021132045-587d123c2828
