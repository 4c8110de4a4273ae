locals {
  prefix    = "${var.name}-${var.stage}"
  partition = startswith(var.region, "cn-") ? "aws-cn" : startswith(var.region, "us-gov-") ? "aws-us-gov" : "aws"
}

# A state holds the database's password: it has a key of its own.
module "key" {
  source = "../modules/key"

  alias       = "${local.prefix}-state"
  description = "State of the deployment ${local.prefix}"
  account_id  = var.account_id
  region      = var.region
  partition   = local.partition
  services    = ["s3", "dynamodb"]
  grants      = true
}

# Versions stay: an older state is the way back from a broken one.
module "bucket" {
  source = "../modules/bucket"

  name                    = "${local.prefix}-state-${var.account_id}"
  partition               = local.partition
  kms_key_arn             = module.key.arn
  deny_insecure_transport = var.deny_insecure_transport
}

# Who holds the row of a state writes it; everybody else waits or is told who does.
resource "aws_dynamodb_table" "lock" {
  name                        = "${local.prefix}-state-lock"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "LockID" # the name that Terraform's backend asks for
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "LockID"
    type = "S"
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = module.key.arn
  }

  point_in_time_recovery {
    enabled = true
  }
}
