terraform {
  required_providers {
    kura = {
      source = "kurafleet/kura"
    }
  }
}

# The token comes from the environment variable KURA_TOKEN or KURA_TOKEN_FILE.
provider "kura" {
  endpoint    = "https://kurad.example.dev:7433"
  environment = "staging"
}
