import {
  to = kura_server.acme
  id = "acme/eu-central"
}
