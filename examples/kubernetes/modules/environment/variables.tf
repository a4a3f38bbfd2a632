variable "environment" {
  description = "The environment that the provider's kurad serves."
  type        = string
}

variable "accounts" {
  description = "Accounts by id, with the handle that appears in their hosts."
  type        = map(string)
}

variable "clusters" {
  description = "Regions by name: the cluster of each, and where it is."
  type = map(object({
    cluster   = string
    latitude  = number
    longitude = number
  }))
}

variable "image_tag" {
  description = "The version that every server runs."
  type        = string
}

variable "replicas" {
  description = "Replicas of each server."
  type        = number
}

variable "storage" {
  description = "Volume of each replica; the controller's default where it is null."
  type        = object({ class = string, size = string })
  default     = null
}

variable "zone" {
  description = "DNS zone of the hosts."
  type        = string
  default     = "kura.example.dev"
}
