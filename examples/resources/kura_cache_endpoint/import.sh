# <account>/<technology>/<url>: what follows the second slash is the url, with its own slashes.
tofu import kura_cache_endpoint.bazel acme/bazel/https://bazel.example.dev:8443/cache
