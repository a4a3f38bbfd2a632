data "kura_cache_endpoints" "acme" {
  account = "acme"
}

output "acme_urls" {
  description = "What clients of acme try, in this order."
  value       = [for e in data.kura_cache_endpoints.acme.endpoints : e.url]
}
