import {
  to = kura_host_template.public
  id = "public"
}
