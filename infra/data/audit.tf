# The write-once bucket, and who may do what with it. An object is locked by its writer (COMPLIANCE, for ANCHOR_RETENTION); the lock is what nobody can undo.
# The bucket's policy refuses deletion to everybody besides, so that a version's marker cannot hide an object either, and no policy of ours has a delete.

locals {
  audit = "arn:${local.partition}:s3:::${local.bucket["audit"]}"
  # What the ledger writes: pkg/audit/anchor names the objects.
  audit_objects = [for kind in ["anchors", "events", "heads"] : "${local.audit}/${kind}/*"]
}

module "audit" {
  source = "../modules/bucket"

  name                    = local.bucket["audit"]
  partition               = local.partition
  kms_key_arn             = local.key["audit"]
  object_lock             = true
  default_retention_days  = var.audit_default_retention_days
  deny_insecure_transport = var.deny_insecure_transport

  # Heads are small, many, and of no use once an anchor covers them, but they are evidence of what was when: they stay where they are.
  cold = { prefixes = ["anchors/", "events/"], days = var.audit_cold_days, small = var.audit_cold_small }

  statements = [{
    Sid       = "NobodyDeletes"
    Effect    = "Deny"
    Principal = "*"
    Action    = ["s3:BypassGovernanceRetention", "s3:DeleteObject", "s3:DeleteObjectTagging", "s3:DeleteObjectVersion", "s3:DeleteObjectVersionTagging"]
    Resource  = "${local.audit}/*"
  }]
}

# ---- whoever checks

resource "aws_iam_role" "verifier" {
  count = length(var.verifier_principals) > 0 ? 1 : 0

  name        = "${local.prefix}-verifier"
  description = "Checks the audit log: reads the bucket, the database's audit tables, and the signing key's public half"

  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { AWS = var.verifier_principals }, Action = "sts:AssumeRole" }]
  })
}

resource "aws_iam_role_policy" "verifier" {
  count = length(aws_iam_role.verifier)

  name = "verify"
  role = aws_iam_role.verifier[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      # A locked object can be overwritten by a newer version, so whoever checks lists versions.
      { Effect = "Allow", Action = ["s3:ListBucket", "s3:ListBucketVersions", "s3:GetBucketVersioning", "s3:GetBucketObjectLockConfiguration"], Resource = [local.audit] },
      { Effect = "Allow", Action = ["s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectRetention"], Resource = local.audit_objects },
      { Effect = "Allow", Action = ["kms:Decrypt"], Resource = [local.key["audit"]] },
      { Effect = "Allow", Action = ["rds-db:connect"], Resource = [local.connect["reader"]] },
      { Effect = "Allow", Action = ["kms:GetPublicKey"], Resource = [var.foundation.anchor_signing_key_arn] },
    ]
  })
}
