locals {
  pattern = "{account_handle}-{cluster_id}{env_suffix}.${var.zone}"

  servers = merge([
    for account, handle in var.accounts : {
      for region, cluster in var.regions : "${account}/${region}" => {
        account = account
        region  = region
        # The same code as the daemon's: known before anything is applied.
        host = provider::kura::host(local.pattern, {
          account_handle = handle
          cluster_id     = cluster
          environment    = var.environment
          env_suffix     = "-${var.environment}"
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

  name        = each.key
  cluster_id  = each.value
  hosts       = { public = kura_host_template.public.name }
  readiness   = { path = "/up", timeout = "2s", port = var.port }
  stall_after = var.stall_after

  kubernetes = {
    cluster       = "demo" # kurad serve --cluster demo=<context>
    namespace     = var.namespace
    image         = "${var.image}:{image_tag}"
    replicas      = 1
    ingress_class = var.ingress_class
  }
}

resource "kura_server" "this" {
  for_each = local.servers

  account   = kura_account.this[each.value.account].id
  region    = kura_region.this[each.value.region].name
  image_tag = lookup(var.image_tags, each.key, var.image_tag)
}
