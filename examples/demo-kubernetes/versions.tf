terraform {
  required_providers {
    kura = {
      source = "kurafleet/kura"
    }
  }
}

# endpoint and token come from KURA_ENDPOINT and KURA_TOKEN_FILE
provider "kura" {
  environment = var.environment
}
