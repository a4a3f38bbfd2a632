data "kura_host_template" "public" {
  name = "public"
}

output "zone" {
  value = data.kura_host_template.public.zone
}
