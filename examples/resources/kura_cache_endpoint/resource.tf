resource "kura_cache_endpoint" "bazel" {
  account    = kura_account.acme.id
  technology = "bazel"
  url        = "https://bazel.example.dev:8443/cache"
}
