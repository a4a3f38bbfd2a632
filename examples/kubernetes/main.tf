# A module per environment, a region per cluster: what the environments share stands here once.
locals {
  accounts = { acme = "acme", umbra = "umbra-games" }

  # Regions by name. The cluster is one that the environment's kurad was given: --cluster prod-eu=<context>.
  clusters = {
    staging = {
      eu-central = { cluster = "staging-eu", latitude = 50.11, longitude = 8.68 }
    }
    production = {
      eu-central = { cluster = "prod-eu", latitude = 50.11, longitude = 8.68 }
      us-east    = { cluster = "prod-us", latitude = 39.04, longitude = -77.49 }
    }
  }
}

module "staging" {
  source    = "./modules/environment"
  providers = { kura = kura.staging }

  environment = "staging"
  accounts    = local.accounts
  clusters    = local.clusters.staging
  image_tag   = "1.5.0-rc.1"
  replicas    = 1
}

module "production" {
  source    = "./modules/environment"
  providers = { kura = kura.production }

  environment = "production"
  accounts    = local.accounts
  clusters    = local.clusters.production
  image_tag   = "1.4.2"
  replicas    = 3
  storage     = { class = "fast", size = "200Gi" }
}
