import {
  to = kura_region.eu_central
  id = "eu-central"
}
