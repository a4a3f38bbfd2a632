# By account and region, or by the name of its instance.
tofu import kura_server.acme acme/eu-central
tofu import kura_server.acme kura-acme-eu-central
