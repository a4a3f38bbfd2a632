import {
  to = kura_account.acme
  id = "acme"
}
