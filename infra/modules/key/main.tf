# A KMS key, its alias and its policy.
#
# In a key's policy the resource "*" is the key itself, and the account as the principal means: whom the account's IAM policies let. So the
# policy is the outer bound. Administration cannot read: who may change the key does not thereby decrypt with it or sign with it.

locals {
  account = { AWS = "arn:${var.partition}:iam::${var.account_id}:root" }

  administration = {
    Sid       = "Administer"
    Effect    = "Allow"
    Principal = local.account
    Action = [
      "kms:CancelKeyDeletion", "kms:CreateAlias", "kms:DeleteAlias", "kms:DescribeKey", "kms:DisableKey", "kms:DisableKeyRotation", "kms:EnableKey",
      "kms:EnableKeyRotation", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListGrants", "kms:ListKeyPolicies", "kms:ListResourceTags",
      "kms:ListKeyRotations", "kms:PutKeyPolicy", "kms:RevokeGrant", "kms:RotateKeyOnDemand", "kms:ScheduleKeyDeletion", "kms:TagResource", "kms:UntagResource",
      "kms:UpdateAlias", "kms:UpdateKeyDescription",
    ]
    Resource = "*"
  }

  through = [for service in var.services : "${service}.${var.region}.amazonaws.com"]

  use = length(var.services) == 0 ? [] : [{
    Sid       = "UseThroughServices"
    Effect    = "Allow"
    Principal = local.account
    Action    = ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
    Resource  = "*"
    Condition = { StringEquals = { "kms:CallerAccount" = var.account_id, "kms:ViaService" = local.through } }
  }]

  grant = !var.grants ? [] : [{
    Sid       = "GrantToServices"
    Effect    = "Allow"
    Principal = local.account
    Action    = ["kms:CreateGrant"]
    Resource  = "*"
    Condition = {
      Bool         = { "kms:GrantIsForAWSResource" = "true" }
      StringEquals = { "kms:CallerAccount" = var.account_id, "kms:ViaService" = local.through }
    }
  }]
}

resource "aws_kms_key" "this" {
  description              = var.description
  key_usage                = var.signs ? "SIGN_VERIFY" : "ENCRYPT_DECRYPT"
  customer_master_key_spec = var.signs ? "ECC_NIST_P256" : "SYMMETRIC_DEFAULT"
  enable_key_rotation      = !var.signs
  # The longest that KMS offers: with the key goes whatever it encrypts, backups included.
  deletion_window_in_days = 30

  # Each part as text of its own, for lists of statements of different shapes have no common type.
  policy = "{\"Version\":\"2012-10-17\",\"Statement\":[${join(",", concat(
    [jsonencode(local.administration)], [for s in local.use : jsonencode(s)], [for s in local.grant : jsonencode(s)], [for s in var.statements : jsonencode(s)],
  ))}]}"

  tags = { Name = var.alias }
}

resource "aws_kms_alias" "this" {
  name          = "alias/${var.alias}"
  target_key_id = aws_kms_key.this.key_id
}
