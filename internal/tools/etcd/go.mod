// The etcd that tests of several kurads run as a cluster. Only ../build.sh builds it.
module github.com/kurafleet/terraform-provider-kura/internal/tools/etcd

go 1.26.6

tool go.etcd.io/etcd/server/v3

require go.etcd.io/etcd/server/v3 v3.7.3
