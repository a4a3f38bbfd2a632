data "kura_region" "eu_central" {
  name = "eu-central"
}

output "eu_central_takes_servers" {
  value = !data.kura_region.eu_central.cordoned && !data.kura_region.eu_central.paused
}
