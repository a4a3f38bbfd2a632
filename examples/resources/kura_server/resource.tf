resource "kura_server" "acme" {
  account   = kura_account.acme.id
  region    = kura_region.eu_central.name
  image_tag = "1.4.2"

  overrides = {
    containers = {
      services = {
        cache = { memory = "1Gi", env = { CACHE_GB = "200" } }
      }
    }
  }

  timeouts = { create = "30m" }
}
