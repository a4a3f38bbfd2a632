data "kura_version" "daemon" {}

output "container_endpoints" {
  value = data.kura_version.daemon.container_endpoints
}
