tofu import kura_account.acme acme
