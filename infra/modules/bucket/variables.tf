variable "name" {
  description = "The bucket's name, of all buckets in the world."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.name))
    error_message = "A bucket's name has 3 to 63 lower-case letters, digits and hyphens."
  }
}

variable "partition" {
  description = "The partition of the region: aws, aws-cn or aws-us-gov."
  type        = string
  default     = "aws"
}

variable "kms_key_arn" {
  description = "The key that encrypts what is in the bucket."
  type        = string
}

variable "versioning" {
  description = "Whether what is overwritten or deleted stays as an older version."
  type        = bool
  default     = true
}

variable "object_lock" {
  description = "Whether objects can be locked. It is decided when the bucket is made, needs versioning, and cannot be taken back."
  type        = bool
  default     = false
}

variable "default_retention_days" {
  description = "How long an object is locked (COMPLIANCE) whose writer does not say; 0 = not at all. Needs object_lock."
  type        = number
  default     = 0
}

variable "expire_days" {
  description = "After how many days objects are removed; null = never."
  type        = number
  default     = null
}

variable "noncurrent_days" {
  description = "After how many days versions are removed that are no longer the current one; null = never."
  type        = number
  default     = null
}

variable "cold" {
  description = "Objects under which prefixes become cold (Glacier Instant Retrieval: readable at once) after how many days, and whether small ones do."
  type        = object({ prefixes = list(string), days = number, small = bool })
  default     = { prefixes = [], days = 90, small = true }
}

variable "statements" {
  description = "Statements of the bucket's policy beside the one against connections without TLS."
  type        = any
  default     = []
}

variable "deny_insecure_transport" {
  description = "Whether the policy refuses connections without TLS. False only against an S3 that ignores conditions and would refuse everything."
  type        = bool
  default     = true
}

variable "force_destroy" {
  description = "Whether destroying the bucket destroys what is in it."
  type        = bool
  default     = false
}
