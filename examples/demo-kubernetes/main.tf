locals {
  pattern = "{account_handle}-{cluster_id}{env_suffix}.${var.zone}"
  managed = length(var.targets) > 0

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

# One host for all regions of an account: it leads to the nearest.
resource "kura_host_template" "global" {
  count = local.managed ? 1 : 0

  name    = "global"
  pattern = "{account_handle}{env_suffix}.${var.zone}"
}

resource "kura_region" "this" {
  for_each = var.regions

  name        = each.key
  cluster_id  = each.value
  hosts       = { public = kura_host_template.public.name, global = one(kura_host_template.global[*].name) }
  location    = local.managed ? var.locations[each.key] : null
  dns         = local.managed ? { mode = "managed", owner_id = "kurad-${var.environment}", target = var.targets[each.key] } : null
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
