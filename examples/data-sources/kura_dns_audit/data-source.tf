data "kura_dns_audit" "all" {}

check "dns" {
  assert {
    condition     = data.kura_dns_audit.all.clean
    error_message = join("\n", [for f in data.kura_dns_audit.all.findings : "${f.host}: ${f.why}"])
  }
}

# Hosts that lead elsewhere: another environment has them, or somebody by hand.
output "shadowed" {
  value = [for f in data.kura_dns_audit.all.findings : f.host if f.kind == "wanted-foreign"]
}
