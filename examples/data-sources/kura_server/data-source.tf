data "kura_server" "acme" {
  account = "acme"
  region  = "eu-central"
}

check "acme_answers" {
  assert {
    condition     = data.kura_server.acme.verdict == "converged"
    error_message = "acme in eu-central is ${data.kura_server.acme.verdict}: ${coalesce(data.kura_server.acme.reason, "no reason given")}"
  }
}
