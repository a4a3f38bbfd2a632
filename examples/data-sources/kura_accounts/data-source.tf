data "kura_accounts" "gold" {
  labels = { tier = "gold" }
}

output "gold" {
  value = [for a in data.kura_accounts.gold.accounts : a.id]
}
