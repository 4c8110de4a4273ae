# What a deployment stands on: network, keys, identity pool, names, mail. No data is here, and no code.

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
    tags = local.tags
  }
}

# CloudFront takes certificates from this region only.
provider "aws" {
  alias               = "cdn"
  region              = "us-east-1"
  allowed_account_ids = [var.account_id]

  default_tags {
    tags = local.tags
  }
}
