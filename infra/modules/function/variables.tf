variable "name" {
  description = "Name of the function."
  type        = string
}

variable "row" {
  description = "Its row of schema/routes.json: what calls it, seconds, MiB, reserved concurrency (-1: none), and its zip."
  type        = object({ on = list(string), timeout = number, memory = number, reserved = number, zip = string })
}

variable "bucket" {
  description = "The bucket that its zip is put into; it keeps versions."
  type        = string
}

variable "role_arn" {
  description = "The role it runs as."
  type        = string
}

variable "settings" {
  description = "Its environment. No secret is in it."
  type        = map(string)
}

variable "tags" {
  description = "What policies tell it by, besides the tier's own tags."
  type        = map(string)
  default     = {}
}

variable "log_group" {
  description = "Name of its log group."
  type        = string
}

variable "log_level" {
  description = "Least level of its log lines."
  type        = string
}

variable "subnet_ids" {
  description = "Where it runs."
  type        = list(string)
}

variable "security_group_id" {
  description = "Its security group."
  type        = string
}
