variable "name" {
  description = "What everything of the platform is called, before the stage."
  type        = string
  default     = "agentplatform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{1,15}$", var.name)) && !can(regex("aws|amazon|cognito", var.name))
    error_message = "name has 2 to 16 lower-case letters and digits and begins with a letter; a hyphen would let the names of two deployments begin alike, and aws, amazon and cognito are words that AWS keeps for itself."
  }
}

variable "stage" {
  description = "Deployment stage, such as dev or prod. Stages in one account share nothing."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{0,15}$", var.stage)) && !can(regex("aws|amazon|cognito", var.stage))
    error_message = "stage has 1 to 16 lower-case letters and digits and begins with a letter, for example dev; a hyphen would let the names of two stages begin alike, and aws, amazon and cognito are words that AWS keeps for itself."
  }
}

variable "region" {
  description = "AWS region, such as eu-central-1."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region is an AWS region's code, for example eu-central-1."
  }
}

variable "account_id" {
  description = "The AWS account to deploy into. With credentials of another account nothing is done."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "account_id is the 12 digits of the AWS account, in quotes if it begins with 0 (aws sts get-caller-identity shows it)."
  }
}

variable "tags" {
  description = "Tags on everything, beside Platform, Stage and Tier."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for k in keys(var.tags) : length(k) <= 128 && !startswith(lower(k), "aws:") && !contains(["Platform", "Stage", "Tier"], k)])
    error_message = "tags: a key has at most 128 characters, does not begin with aws:, and Platform, Stage and Tier are set already."
  }
}

variable "deny_insecure_transport" {
  description = "Whether the bucket refuses connections without TLS. False only against an S3 that ignores conditions of policies and would refuse everything."
  type        = bool
  default     = true
}

variable "deletion_protection" {
  description = "Whether the lock table refuses to be deleted."
  type        = bool
  default     = true
}
