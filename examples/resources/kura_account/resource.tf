resource "kura_account" "acme" {
  id     = "acme"
  handle = "acme-inc"
  labels = { tier = "gold" }
}
