variable "accounts" {
  description = "Accounts by id, with the handle that appears in their hosts."
  type        = map(string)
  default     = { acme = "acme", umbra = "umbra" }
}

variable "regions" {
  description = "Regions by name, with the cluster id that appears in their hosts."
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

variable "tls_dir" {
  description = "Folder on the container host with server.pem and server-key.pem for *.kura.test."
  type        = string
}
