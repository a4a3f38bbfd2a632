output "hosts" {
  description = "Every host that this configuration mints, known in the first plan."
  value       = { for key, server in local.servers : key => server.host }
}

output "urls" {
  description = "Where each server is declared to answer."
  value       = { for key, server in kura_server.this : key => server.url }
}
