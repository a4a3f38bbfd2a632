variable "accounts" {
  description = "Accounts by id, with the handle that appears in their hosts."
  type        = map(string)
  default     = { acme = "acme", umbra = "umbra" }
}

variable "regions" {
  description = "Regions by name, with the cluster id that appears in their hosts. Here one Kubernetes cluster holds them all."
  type        = map(string)
  default     = { eu = "eu-central", us = "us-east" }
}

variable "image_tag" {
  description = "The version that every server runs."
  type        = string
  default     = "v1"
}

variable "image_tags" {
  description = "Exceptions from image_tag, by account/region."
  type        = map(string)
  default     = {}
}

variable "environment" {
  description = "Environment of the daemon: kurad serve --environment demo --env-suffix=-demo"
  type        = string
  default     = "demo"
}

variable "zone" {
  description = "DNS zone of the hosts."
  type        = string
}

variable "image" {
  description = "Image of the servers, without a tag."
  type        = string
}

variable "namespace" {
  description = "Namespace of the instances."
  type        = string
  default     = "kura"
}

variable "ingress_class" {
  description = "Ingress class of the hosts; the cluster's default one where it is null."
  type        = string
  default     = null
}

variable "port" {
  description = "Port at which the hosts are reached; 443 where it is null."
  type        = number
  default     = null
}

variable "stall_after" {
  description = "How long a server may be unsettled before an apply stops waiting for it."
  type        = string
  default     = "3m"
}

variable "targets" {
  description = "Address that the hosts of each region lead to, by region, where kurad publishes them (kurad serve --zone); none: somebody else does."
  type        = map(string)
  default     = {}
}

variable "locations" {
  description = "Where each region is, in degrees: clients of the global host are led to the nearest."
  type        = map(object({ latitude = number, longitude = number }))
  default = {
    eu = { latitude = 50.1, longitude = 8.7 }
    us = { latitude = 38.9, longitude = -77.4 }
  }
}
