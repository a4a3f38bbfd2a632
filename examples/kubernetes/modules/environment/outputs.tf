output "hosts" {
  description = "Every host of the environment, by environment/account/region."
  value = {
    for key, server in local.servers : "${var.environment}/${key}" => provider::kura::host(local.pattern, {
      account_handle = var.accounts[server.account]
      cluster_id     = server.region
      environment    = var.environment
    })
  }
}
