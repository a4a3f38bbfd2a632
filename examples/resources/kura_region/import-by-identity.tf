import {
  to = kura_region.eu_central
  identity = {
    name = "eu-central"
  }
}
