import {
  to = kura_server.acme
  identity = {
    account = "acme"
    region  = "eu-central"
  }
}
