output "hosts" {
  description = "Every host of both environments, known in the first plan."
  value       = merge(module.staging.hosts, module.production.hosts)
}
