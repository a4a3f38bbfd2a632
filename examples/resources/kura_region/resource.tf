resource "kura_region" "eu_central" {
  name         = "eu-central"
  display_name = "Frankfurt"
  hosts        = { public = kura_host_template.public.name }
  readiness    = { path = "/up", timeout = "2s" }

  stall_after   = "10m"
  max_unsettled = 3

  containers = {
    endpoint = "edge"
    services = {
      cache = {
        image        = "registry.example.dev/kura/cache:{image_tag}"
        env          = { PUBLIC_HOST = "{public_host}" }
        volumes      = [{ name = "data", path = "/var/lib/kura" }]
        ports        = { https = { container = 8443, endpoint = "public" } }
        memory       = "512Mi"
        grace_period = "15s"
      }
    }
  }
}
