// The linter of .golangci.yml. Only ../build.sh builds it.
module github.com/kurafleet/terraform-provider-kura/internal/tools/golangci-lint

go 1.26.0

tool github.com/golangci/golangci-lint/v2/cmd/golangci-lint

require github.com/golangci/golangci-lint/v2 v2.15.0
