data "kura_host_templates" "example" {
  zone = "kura.example.dev"
}

output "patterns" {
  value = { for t in data.kura_host_templates.example.host_templates : t.name => t.pattern }
}
