# One key for each category of what is encrypted, so that who may read one category cannot read another.
#
# Each category is read through one service by the roles that the app tier gives to functions; the key's policy admits only that service.

locals {
  keys = {
    database     = { services = ["rds", "secretsmanager"], grants = true, for = "the database, its backups, and its owner's password" }
    platform     = { services = ["secretsmanager"], grants = false, for = "secrets of the platform itself: API_AUTH_SECRET, PAGE_TOKEN_KEY" }
    emission     = { services = ["secretsmanager"], grants = false, for = "AUDIT_EMISSION_KEY, which nobody may have who can write to the database directly" }
    oauth        = { services = ["ssm"], grants = false, for = "users' OAuth tokens at task trackers and other services" }
    tools        = { services = ["ssm"], grants = false, for = "API keys of tool servers" }
    integrations = { services = ["ssm"], grants = false, for = "signing secrets and tokens of integrations, and signing secrets of webhooks" }
    mail         = { services = ["s3"], grants = false, for = "mails that were received" }
    objects      = { services = ["s3"], grants = false, for = "skill packs, knowledge documents, exports, and the functions' zips" }
    audit        = { services = ["s3"], grants = false, for = "the write-once audit log" }
    assets       = { services = ["s3"], grants = false, for = "the console's files, which the CDN reads" }
    logs         = { services = [], grants = false, for = "logs, queues of failed events, and the alarms' topic" }
  }

  # What AWS services do by themselves, without a principal of the account behind them. Each is bound to this account, and to this deployment
  # where its service says for what it calls.
  service_statements = {
    assets = [{
      Sid       = "ReadByCDN"
      Effect    = "Allow"
      Principal = { Service = "cloudfront.amazonaws.com" }
      Action    = ["kms:Decrypt"]
      Resource  = "*"
      Condition = { ArnLike = { "aws:SourceArn" = "arn:${local.partition}:cloudfront::${var.account_id}:distribution/*" } }
    }]
    # SES encrypts what it puts into the bucket, and reads again the data key of a bucket that has one for many objects.
    mail = [{
      Sid       = "ReceiveMail"
      Effect    = "Allow"
      Principal = { Service = "ses.amazonaws.com" }
      Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
      Resource  = "*"
      Condition = {
        StringEquals = { "aws:SourceAccount" = var.account_id }
        ArnLike      = { "aws:SourceArn" = "arn:${local.partition}:ses:${var.region}:${var.account_id}:receipt-rule-set/*:receipt-rule/${local.prefix}" }
      }
    }]
    logs = [
      {
        Sid       = "EncryptLogs"
        Effect    = "Allow"
        Principal = { Service = "logs.${var.region}.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
        Resource  = "*"
        Condition = { ArnLike = { "kms:EncryptionContext:aws:logs:arn" = [for group in local.log_groups : "${local.arn.logs}:log-group:${group}"] } }
      },
      {
        Sid       = "NotifyAndQueue"
        Effect    = "Allow"
        Principal = { Service = ["budgets.amazonaws.com", "cloudwatch.amazonaws.com"] }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource  = "*"
        Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
      },
      {
        # A function's failed events go to its queue under the function's own role, and people read the queue under theirs.
        Sid       = "UseThroughQueuesAndTopics"
        Effect    = "Allow"
        Principal = { AWS = "arn:${local.partition}:iam::${var.account_id}:root" }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource  = "*"
        Condition = { StringEquals = { "kms:CallerAccount" = var.account_id, "kms:ViaService" = ["sns.${var.region}.amazonaws.com", "sqs.${var.region}.amazonaws.com"] } }
      },
    ]
  }

  # The names of this deployment's log groups begin so. Those of functions and of RDS are given by their services.
  log_groups = [
    "/${local.prefix}/*", "/aws/lambda/${local.prefix}-*", "/aws/rds/cluster/${local.prefix}*", "/aws/rds/instance/${local.prefix}*",
    "/aws/vendedlogs/${local.prefix}/*", "/aws/vendedlogs/states/${local.prefix}-*", "/aws/apigateway/${local.prefix}*", "/aws/appsync/apis/*",
    "/aws/bedrock-agentcore/*",
  ]
}

module "key" {
  source   = "../modules/key"
  for_each = local.keys

  alias       = "${local.prefix}-${each.key}"
  description = "${local.prefix}: ${each.value.for}"
  account_id  = var.account_id
  region      = var.region
  partition   = local.partition
  services    = each.value.services
  grants      = each.value.grants
  statements  = lookup(local.service_statements, each.key, [])
}

# The anchors' signing key never leaves KMS. Only digests travel to it, only roles of this deployment may ask it to sign, and anybody in the account may
# have its public half, by which the verifier checks the audit log.
module "anchor_key" {
  source = "../modules/key"

  alias       = "${local.prefix}-anchor"
  description = "${local.prefix}: signs the audit log's anchors and export manifests"
  account_id  = var.account_id
  region      = var.region
  partition   = local.partition
  signs       = true

  statements = [
    {
      Sid       = "SignDigests"
      Effect    = "Allow"
      Principal = { AWS = "arn:${local.partition}:iam::${var.account_id}:root" }
      Action    = ["kms:Sign"]
      Resource  = "*"
      Condition = {
        ArnLike      = { "aws:PrincipalArn" = "arn:${local.partition}:iam::${var.account_id}:role/${local.prefix}-*" }
        StringEquals = { "kms:MessageType" = "DIGEST", "kms:SigningAlgorithm" = "ECDSA_SHA_256" }
      }
    },
    {
      Sid       = "PublicHalf"
      Effect    = "Allow"
      Principal = { AWS = "arn:${local.partition}:iam::${var.account_id}:root" }
      Action    = ["kms:GetPublicKey", "kms:Verify"]
      Resource  = "*"
    },
  ]
}
