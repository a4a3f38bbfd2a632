import {
  to = kura_cache_endpoint.bazel
  identity = {
    account    = "acme"
    technology = "bazel"
    url        = "https://bazel.example.dev:8443/cache"
  }
}
