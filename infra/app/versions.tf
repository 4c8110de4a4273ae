# Everything that is made of the functions: schema/routes.json is read, and nothing here names a single one without need.

terraform {
  required_version = ">= 1.6"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }

  # Bucket, table and key are what the tier state puts out: terraform init -backend-config=…
  backend "s3" {}
}

provider "aws" {
  region              = var.region
  allowed_account_ids = [var.account_id]

  default_tags {
    tags = merge(var.tags, { Platform = var.name, Stage = var.stage, Tier = "app" })
  }
}
