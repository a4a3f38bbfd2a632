import {
  to = kura_account.acme
  identity = {
    id = "acme"
  }
}
