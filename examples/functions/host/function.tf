# The host that a server will have, known in the very first plan.
output "host" {
  value = provider::kura::host("{account_handle}-{cluster_id}{env_suffix}.kura.example.dev", {
    account_handle = "acme"
    cluster_id     = "eu-central"
    environment    = "staging"
  })
}

# An environment with a suffix of its own.
output "preview_host" {
  value = provider::kura::host("{account_handle}-{region}{env_suffix}.kura.example.dev", {
    account_handle = "acme"
    cluster_id     = "eu-central"
    region         = "eu-central"
    environment    = "preview"
    env_suffix     = "-preview"
  })
}
