import {
  to = kura_host_template.public
  identity = {
    name = "public"
  }
}
