tofu import kura_region.eu_central eu-central
