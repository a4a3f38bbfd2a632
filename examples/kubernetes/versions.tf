terraform {
  required_providers {
    kura = {
      source = "kurafleet/kura"
    }
  }
}

# One kurad per environment, each with a token of its own.
provider "kura" {
  alias       = "staging"
  endpoint    = var.endpoints.staging
  token_file  = var.token_files.staging
  environment = "staging"
}

provider "kura" {
  alias       = "production"
  endpoint    = var.endpoints.production
  token_file  = var.token_files.production
  environment = "production"
}
