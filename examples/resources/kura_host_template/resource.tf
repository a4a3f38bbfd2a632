resource "kura_host_template" "public" {
  name    = "public"
  pattern = "{account_handle}-{cluster_id}{env_suffix}.kura.example.dev"
}
