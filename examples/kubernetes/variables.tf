variable "endpoints" {
  description = "URL of each environment's kurad."
  type        = object({ staging = string, production = string })
  default = {
    staging    = "https://kurad.staging.example.dev:7433"
    production = "https://kurad.example.dev:7433"
  }
}

variable "token_files" {
  description = "File with the token for each environment's kurad."
  type        = object({ staging = string, production = string })
  default = {
    staging    = "/run/secrets/kura-staging"
    production = "/run/secrets/kura-production"
  }
}
