locals {
  pattern = "{account_handle}-{cluster_id}{env_suffix}.${var.zone}"

  servers = merge([
    for account in keys(var.accounts) : {
      for region in keys(var.clusters) : "${account}/${region}" => { account = account, region = region }
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
  for_each = var.clusters

  name      = each.key
  hosts     = { public = kura_host_template.public.name }
  location  = { latitude = each.value.latitude, longitude = each.value.longitude }
  readiness = { path = "/up", timeout = "2s" }

  stall_after   = "10m"
  max_unsettled = 5

  kubernetes = {
    cluster       = each.value.cluster
    image         = "registry.example.dev/kura/cache:{image_tag}"
    replicas      = var.replicas
    storage       = var.storage
    ingress_class = "nginx"
    node_selector = { pool = "cache" }
    tolerations   = [{ key = "dedicated", value = "cache", effect = "NoSchedule" }]
    env           = { CACHE_GB = "150" }
  }
}

resource "kura_server" "this" {
  for_each = local.servers

  account   = kura_account.this[each.value.account].id
  region    = kura_region.this[each.value.region].name
  image_tag = var.image_tag
}
