import {
  to = kura_cache_endpoint.bazel
  id = "acme/bazel/https://bazel.example.dev:8443/cache"
}
