locals {
  prefix    = "${var.name}-${var.stage}"
  partition = startswith(var.region, "cn-") ? "aws-cn" : startswith(var.region, "us-gov-") ? "aws-us-gov" : "aws"
  key       = var.foundation.key_arns
}

# One variable cannot look at another's value in its own rule before Terraform 1.9.
resource "terraform_data" "inputs" {
  lifecycle {
    precondition {
      condition     = var.foundation.prefix == local.prefix && var.foundation.region == var.region && var.foundation.account_id == var.account_id
      error_message = "foundation is of ${var.foundation.prefix} in ${var.foundation.region}, account ${var.foundation.account_id}; this is ${local.prefix} in ${var.region}, account ${var.account_id}."
    }
    precondition {
      condition     = var.aurora_min_capacity <= var.aurora_max_capacity
      error_message = "aurora_min_capacity (${var.aurora_min_capacity}) is above aurora_max_capacity (${var.aurora_max_capacity})."
    }
    precondition {
      condition     = var.rds_max_storage_gb >= var.rds_storage_gb * 1.1
      error_message = "rds_max_storage_gb must be at least a tenth above rds_storage_gb, or the storage could not grow."
    }
  }
}
