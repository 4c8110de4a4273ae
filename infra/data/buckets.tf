# Buckets by what is in them. Names carry the account, for a bucket's name is one of all buckets in the world.

locals {
  bucket = { for purpose in ["skills", "knowledge", "exports", "mail", "assets", "functions", "audit"] : purpose => "${local.prefix}-${purpose}-${var.account_id}" }

  buckets = {
    skills    = { key = "objects", versioning = true, old = var.old_version_days, expire = null }
    knowledge = { key = "objects", versioning = true, old = var.old_version_days, expire = null }
    assets    = { key = "assets", versioning = true, old = var.old_version_days, expire = null }
    functions = { key = "objects", versioning = true, old = var.old_version_days, expire = null }
    # Copies of what is in the audit log, with people's names in them: gone when their time is over, without a version that stays.
    exports = { key = "objects", versioning = false, old = null, expire = var.exports_days }
    # Mails as they came: what agents need of them is in threads.
    mail = { key = "mail", versioning = false, old = null, expire = var.mail_days }
  }

  bucket_statements = {
    # The CDN's own principal: which of the account's distributions reads is said by the distribution's origin.
    assets = [{
      Sid       = "ReadByCDN"
      Effect    = "Allow"
      Principal = { Service = "cloudfront.amazonaws.com" }
      Action    = "s3:GetObject"
      Resource  = "arn:${local.partition}:s3:::${local.bucket["assets"]}/*"
      Condition = { ArnLike = { "aws:SourceArn" = "arn:${local.partition}:cloudfront::${var.account_id}:distribution/*" } }
    }]
    # By the receipt rule of this deployment's app tier, in whatever rule set it is.
    mail = [{
      Sid       = "ReceiveMail"
      Effect    = "Allow"
      Principal = { Service = "ses.amazonaws.com" }
      Action    = "s3:PutObject"
      Resource  = "arn:${local.partition}:s3:::${local.bucket["mail"]}/in/*"
      Condition = {
        StringEquals = { "aws:SourceAccount" = var.account_id }
        ArnLike      = { "aws:SourceArn" = "arn:${local.partition}:ses:${var.region}:${var.account_id}:receipt-rule-set/*:receipt-rule/${local.prefix}" }
      }
    }]
  }
}

module "bucket" {
  source   = "../modules/bucket"
  for_each = local.buckets

  name                    = local.bucket[each.key]
  partition               = local.partition
  kms_key_arn             = local.key[each.value.key]
  versioning              = each.value.versioning
  noncurrent_days         = each.value.old
  expire_days             = each.value.expire
  statements              = lookup(local.bucket_statements, each.key, [])
  force_destroy           = var.force_destroy_buckets
  deny_insecure_transport = var.deny_insecure_transport
}
