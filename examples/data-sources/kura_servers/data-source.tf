data "kura_servers" "failed" {
  verdict = "failed"
}

output "failed" {
  value = { for s in data.kura_servers.failed.servers : "${s.account}/${s.region}" => s.reason }
}
