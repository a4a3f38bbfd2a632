data "kura_account" "acme" {
  id = "acme"
}

output "acme_handle" {
  value = data.kura_account.acme.handle
}
