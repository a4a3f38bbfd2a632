// The Terraform that acceptance tests drive beside OpenTofu. Only ../build.sh builds it, for tests: its license
// (BUSL-1.1) lets nobody ship it.
module github.com/kurafleet/terraform-provider-kura/internal/tools/terraform

go 1.26.6

tool github.com/hashicorp/terraform

require github.com/hashicorp/terraform v1.16.4

// Written by ./prepare: Terraform's module zip leaves its nested modules out.
replace (
	github.com/hashicorp/terraform/internal/backend/remote-state/azure => ./stubs/azure
	github.com/hashicorp/terraform/internal/backend/remote-state/consul => ./stubs/consul
	github.com/hashicorp/terraform/internal/backend/remote-state/cos => ./stubs/cos
	github.com/hashicorp/terraform/internal/backend/remote-state/gcs => ./stubs/gcs
	github.com/hashicorp/terraform/internal/backend/remote-state/kubernetes => ./stubs/kubernetes
	github.com/hashicorp/terraform/internal/backend/remote-state/oci => ./stubs/oci
	github.com/hashicorp/terraform/internal/backend/remote-state/oss => ./stubs/oss
	github.com/hashicorp/terraform/internal/backend/remote-state/pg => ./stubs/pg
	github.com/hashicorp/terraform/internal/backend/remote-state/s3 => ./stubs/s3
	github.com/hashicorp/terraform/internal/legacy => ./stubs/legacy
)
