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

variable "foundation" {
  description = "The output foundation of the tier foundation: TF_VAR_foundation=\"$(terraform -chdir=infra/foundation output -json foundation)\"."
  type = object({
    prefix                     = string
    region                     = string
    account_id                 = string
    database_subnet_ids        = list(string)
    database_security_group_id = string
    key_arns                   = map(string)
    anchor_signing_key_arn     = string
  })

  validation {
    condition     = length(setsubtract(["database", "platform", "emission", "mail", "objects", "audit", "assets", "logs"], keys(var.foundation.key_arns))) == 0
    error_message = "foundation has not all of the keys database, platform, emission, mail, objects, audit, assets and logs: apply the tier foundation of this version first."
  }
  validation {
    condition     = length(var.foundation.database_subnet_ids) >= 2
    error_message = "foundation has less than two subnets for the database, which needs two zones."
  }
}

# ---- database

variable "database_engine" {
  description = "The database: aurora-serverless (Aurora PostgreSQL Serverless v2, whose capacity follows the load, and where one instance takes over from another) or rds-postgres (one server of a fixed size, cheaper while small)."
  type        = string
  default     = "aurora-serverless"

  validation {
    condition     = contains(["aurora-serverless", "rds-postgres"], var.database_engine)
    error_message = "database_engine is aurora-serverless or rds-postgres."
  }
}

variable "database_version" {
  description = "PostgreSQL's version, with its minor number: an upgrade is an operation, not something that happens. The engine's default (null) is what this release was written for."
  type        = string
  default     = null

  validation {
    condition     = var.database_version == null || can(regex("^(15\\.([4-9]|[1-9][0-9])|(1[6-9]|[2-9][0-9])\\.[0-9]+)$", var.database_version))
    error_message = "database_version is 15.4 or later with its minor number, for example 16.8: older ones have no vector indexes (pgvector 0.5)."
  }
}

variable "db_password" {
  description = "Password of the database's owner, with which migrations are run and nothing else; functions sign in with IAM."
  type        = string
  sensitive   = true

  validation {
    condition     = length(var.db_password) >= 16 && length(var.db_password) <= 99
    error_message = "db_password has 16 to 99 characters."
  }
  validation {
    condition     = can(regex("^[!-~]*$", var.db_password)) && !can(regex("[/@\"']", var.db_password))
    error_message = "db_password has printable ASCII characters without spaces, and none of / @ \" ', which the database service or a connection string would misread."
  }
}

variable "database_name" {
  description = "The database's name within the server."
  type        = string
  default     = "agentplatform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9_]{0,62}$", var.database_name)) && !contains(["postgres", "rdsadmin", "template0", "template1"], var.database_name)
    error_message = "database_name has at most 63 lower-case letters, digits and underscores, begins with a letter, and is none of the server's own (postgres, rdsadmin, template0, template1)."
  }
}

variable "aurora_min_capacity" {
  description = "Least capacity of an Aurora instance, in units of about 2 GiB; 0 = it sleeps when nobody calls, and the first call then takes about 15 s (the platform's own clock calls every minute, so it sleeps only with its schedules off)."
  type        = number
  default     = 0.5

  validation {
    condition     = var.aurora_min_capacity >= 0 && var.aurora_min_capacity <= 256 && var.aurora_min_capacity * 2 == floor(var.aurora_min_capacity * 2)
    error_message = "aurora_min_capacity is 0 to 256 in steps of 0.5."
  }
}

variable "aurora_max_capacity" {
  description = "Most capacity of an Aurora instance. It bounds the bill, and the connections: about 200 for each unit, and at most about 2,000 while aurora_min_capacity is 0.5 or less."
  type        = number
  default     = 8

  validation {
    condition     = var.aurora_max_capacity >= 1 && var.aurora_max_capacity <= 256 && var.aurora_max_capacity * 2 == floor(var.aurora_max_capacity * 2)
    error_message = "aurora_max_capacity is 1 to 256 in steps of 0.5."
  }
}

variable "aurora_instances" {
  description = "Aurora instances: 1, or more in other zones, of which one takes over within about half a minute."
  type        = number
  default     = 1

  validation {
    condition     = var.aurora_instances >= 1 && var.aurora_instances <= 15 && floor(var.aurora_instances) == var.aurora_instances
    error_message = "aurora_instances is 1 to 15."
  }
}

variable "rds_instance_class" {
  description = "Size of the server with rds-postgres."
  type        = string
  default     = "db.t4g.medium"

  validation {
    condition     = can(regex("^db\\.[a-z0-9]+\\.[a-z0-9]+$", var.rds_instance_class))
    error_message = "rds_instance_class is a class of RDS, for example db.t4g.medium."
  }
}

variable "rds_storage_gb" {
  description = "Storage of rds-postgres at first, in GiB; it grows by itself up to rds_max_storage_gb."
  type        = number
  default     = 20

  validation {
    condition     = var.rds_storage_gb >= 20 && var.rds_storage_gb <= 65536 && floor(var.rds_storage_gb) == var.rds_storage_gb
    error_message = "rds_storage_gb is 20 to 65536."
  }
}

variable "rds_max_storage_gb" {
  description = "Up to where the storage of rds-postgres grows, in GiB."
  type        = number
  default     = 200

  validation {
    condition     = var.rds_max_storage_gb >= 22 && var.rds_max_storage_gb <= 65536 && floor(var.rds_max_storage_gb) == var.rds_max_storage_gb
    error_message = "rds_max_storage_gb is 22 to 65536."
  }
}

variable "rds_multi_az" {
  description = "Whether rds-postgres has a standby in another zone."
  type        = bool
  default     = false
}

variable "database_proxy" {
  description = "Share connections among functions by RDS Proxy. For more functions at once than the database takes connections; it costs by the capacity of the database."
  type        = bool
  default     = false
}

variable "backup_days" {
  description = "For how many days back the database can be restored, to any second. At least the promised 7."
  type        = number
  default     = 7

  validation {
    condition     = var.backup_days >= 7 && var.backup_days <= 35 && floor(var.backup_days) == var.backup_days
    error_message = "backup_days is 7 to 35: seven days of backups are promised, and the service keeps no more than 35."
  }
}

variable "deletion_protection" {
  description = "Whether the database refuses to be deleted."
  type        = bool
  default     = true
}

variable "final_snapshot" {
  description = "Last part of the name of the snapshot that is taken when the database is deleted; null = none is taken. A snapshot of that name must not be there yet."
  type        = string
  default     = "final"

  validation {
    condition     = var.final_snapshot == null || can(regex("^[a-z0-9]+(-[a-z0-9]+)*$", var.final_snapshot))
    error_message = "final_snapshot has lower-case letters, digits and single hyphens, for example final-2."
  }
}

variable "performance_insights" {
  description = "Whether what the database spends its time on is kept for 7 days, free of charge."
  type        = bool
  default     = true
}

variable "log_days" {
  description = "How long the database's log is kept, in days that CloudWatch Logs knows."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_days)
    error_message = "log_days is a retention that CloudWatch Logs knows: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, …"
  }
}

# ---- buckets

variable "audit_cold_days" {
  description = "After how many days audit logs and anchors move to cold storage, which is still read at once."
  type        = number
  default     = 90

  validation {
    condition     = var.audit_cold_days >= 1 && floor(var.audit_cold_days) == var.audit_cold_days
    error_message = "audit_cold_days is 1 or more."
  }
}

variable "audit_cold_small" {
  description = "Whether objects below 128 KiB move to cold storage too, where each is paid for as 128 KiB, and moving 1,000 for 0.02 dollars: below about 22 KB that costs more than to stay. False leaves them where they are; also against an S3 whose lifecycles know no sizes."
  type        = bool
  default     = true
}

variable "audit_default_retention_days" {
  description = "COMPLIANCE lock of an object in the audit bucket whose writer names none; 0 = none. The platform names one for each object (ANCHOR_RETENTION), so this is for whatever somebody else puts there, and nobody removes that before its time, the account's root included."
  type        = number
  default     = 0

  validation {
    condition     = var.audit_default_retention_days >= 0 && var.audit_default_retention_days <= 36500 && floor(var.audit_default_retention_days) == var.audit_default_retention_days
    error_message = "audit_default_retention_days is 0 to 36500."
  }
}

variable "exports_days" {
  description = "After how many days exports are removed. Their links are good for 15 minutes; a day is the least that S3 counts."
  type        = number
  default     = 1

  validation {
    condition     = var.exports_days >= 1 && var.exports_days <= 365 && floor(var.exports_days) == var.exports_days
    error_message = "exports_days is 1 to 365."
  }
}

variable "mail_days" {
  description = "After how many days received mails are removed. A mail that could not be taken in can be tried again until then."
  type        = number
  default     = 30

  validation {
    condition     = var.mail_days >= 15 && var.mail_days <= 365 && floor(var.mail_days) == var.mail_days
    error_message = "mail_days is 15 to 365: what failed waits for up to 14 days in the dead letters, and needs its mail."
  }
}

variable "old_version_days" {
  description = "How long replaced and deleted versions of skills, knowledge documents, console files and functions can be had back."
  type        = number
  default     = 90

  validation {
    condition     = var.old_version_days >= 7 && floor(var.old_version_days) == var.old_version_days
    error_message = "old_version_days is 7 or more."
  }
}

variable "force_destroy_buckets" {
  description = "Whether destroying the tier destroys what is in the buckets, for trials. Never in the audit bucket."
  type        = bool
  default     = false
}

variable "deny_insecure_transport" {
  description = "Whether buckets refuse connections without TLS. False only against an S3 that ignores conditions of policies and would refuse everything."
  type        = bool
  default     = true
}

variable "verifier_principals" {
  description = "ARNs of the users and roles that may take the role of the audit log's verifier, which only reads; auditors of another account too. Empty: there is no such role."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for a in var.verifier_principals : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:(root|(user|role)/.+)$", a))])
    error_message = "verifier_principals are ARNs of IAM users, roles or accounts, for example arn:aws:iam::123456789012:role/auditor."
  }
}

# ---- secrets

variable "secret_recovery_days" {
  description = "For how many days the database owner's secret can be had back once deleted: 7 to 30, or 0 = it is gone at once, for trials."
  type        = number
  default     = 30

  validation {
    condition     = var.secret_recovery_days == 0 || var.secret_recovery_days >= 7 && var.secret_recovery_days <= 30 && floor(var.secret_recovery_days) == var.secret_recovery_days
    error_message = "secret_recovery_days is 7 to 30, or 0."
  }
}
