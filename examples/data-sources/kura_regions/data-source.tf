data "kura_regions" "containers" {
  runtime = "containers"
}

output "regions" {
  value = [for r in data.kura_regions.containers.regions : r.name if !r.cordoned]
}
