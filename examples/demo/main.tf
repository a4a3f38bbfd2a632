locals {
  pattern = "{account_handle}-{cluster_id}{env_suffix}.kura.test"

  servers = merge([
    for account, handle in var.accounts : {
      for region, cluster in var.regions : "${account}/${region}" => {
        account = account
        region  = region
        # The same code as the daemon's: known before anything is applied.
        host = provider::kura::host(local.pattern, {
          account_handle = handle
          cluster_id     = cluster
          environment    = "staging"
        })
      }
    }
  ]...)
}

resource "kura_account" "this" {
  for_each = var.accounts

  id     = each.key
  handle = each.value
}

resource "kura_host_template" "public" {
  name    = "public"
  pattern = local.pattern
}

resource "kura_region" "this" {
  for_each = var.regions

  name       = each.key
  cluster_id = each.value
  hosts      = { public = kura_host_template.public.name }
  readiness  = { path = "/up", timeout = "2s" }
  dns        = { mode = "managed", owner_id = "kurad-staging", target = "127.0.0.1" }

  containers = {
    endpoint = "local"
    services = {
      cache = {
        image        = "localhost/kura-cache:{image_tag}"
        grace_period = "5s"
        env = {
          KURA_ACCOUNT  = "{account}"
          KURA_TLS_CERT = "/tls/server.pem"
          KURA_TLS_KEY  = "/tls/server-key.pem"
        }
        volumes = [
          { name = "data", path = "/var/lib/kura" },
          { host_path = var.tls_dir, path = "/tls", read_only = true },
        ]
        ports = { https = { container = 8443, endpoint = "public" } }
      }
    }
  }
}

resource "kura_server" "this" {
  for_each = local.servers

  account   = kura_account.this[each.value.account].id
  region    = kura_region.this[each.value.region].name
  image_tag = lookup(var.image_tags, each.key, var.image_tag)
}
