# Where the other tiers keep their state. Applied once for each stage, before them, with a state of its own in a local file: it holds no secret,
# and what it makes can be imported by name if the file is lost.

terraform {
  required_version = ">= 1.6"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

provider "aws" {
  region              = var.region
  allowed_account_ids = [var.account_id]

  default_tags {
    tags = merge(var.tags, { Platform = var.name, Stage = var.stage, Tier = "state" })
  }
}
