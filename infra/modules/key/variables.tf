variable "alias" {
  description = "The key's name, without alias/."
  type        = string
}

variable "description" {
  description = "What the key is for, in the words of whoever finds it in the console."
  type        = string
}

variable "account_id" {
  description = "The account whose IAM policies say who may use the key, within what the key's own policy allows."
  type        = string
}

variable "region" {
  description = "The key's region."
  type        = string
}

variable "partition" {
  description = "The partition of the region: aws, aws-cn or aws-us-gov."
  type        = string
  default     = "aws"
}

variable "services" {
  description = "Services (rds, s3, secretsmanager, ssm, …) through which the account's principals may use the key. A direct call to KMS decrypts nothing."
  type        = list(string)
  default     = []
}

variable "grants" {
  description = "Whether those services may hold grants on the key, as a database does that works when nobody calls it."
  type        = bool
  default     = false
}

variable "signs" {
  description = "Whether the key signs (ECC_NIST_P256, of which KMS hands out the public half) instead of encrypting. A signing key is not rotated: its public half is what others trust."
  type        = bool
  default     = false
}

variable "statements" {
  description = "Statements of the key's policy beside the ones for administration and for the services."
  type        = any
  default     = []
}
