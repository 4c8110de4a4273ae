# A private bucket: encrypted with a key of ours, owned by the account whoever writes, no public access, TLS only.

locals {
  # From the name, so that a plan shows the whole policy.
  arn = "arn:${var.partition}:s3:::${var.name}"

  insecure = !var.deny_insecure_transport ? [] : [{
    Sid       = "DenyInsecureTransport"
    Effect    = "Deny"
    Principal = "*"
    Action    = "s3:*"
    Resource  = [local.arn, "${local.arn}/*"]
    Condition = { Bool = { "aws:SecureTransport" = "false" } }
  }]

  statements = concat([for s in local.insecure : jsonencode(s)], [for s in var.statements : jsonencode(s)])
}

resource "aws_s3_bucket" "this" {
  bucket              = var.name
  object_lock_enabled = var.object_lock
  force_destroy       = var.force_destroy

  lifecycle {
    precondition {
      condition     = !var.object_lock || var.versioning
      error_message = "${var.name}: object lock needs versioning."
    }
    precondition {
      condition     = var.object_lock || var.default_retention_days == 0
      error_message = "${var.name}: a default retention needs object lock."
    }
  }
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket                  = aws_s3_bucket.this.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    # One call to KMS serves many objects.
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_versioning" "this" {
  count  = var.versioning ? 1 : 0
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_object_lock_configuration" "this" {
  count  = var.object_lock ? 1 : 0
  bucket = aws_s3_bucket.this.id

  dynamic "rule" {
    for_each = var.default_retention_days > 0 ? [var.default_retention_days] : []

    content {
      default_retention {
        mode = "COMPLIANCE"
        days = rule.value
      }
    }
  }

  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  # Parts of an upload that nobody finished are in no listing, and are paid for.
  rule {
    id     = "unfinished-uploads"
    status = "Enabled"

    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  dynamic "rule" {
    for_each = var.expire_days == null ? [] : [var.expire_days]

    content {
      id     = "expire"
      status = "Enabled"

      filter {}

      expiration {
        days = rule.value
      }
    }
  }

  dynamic "rule" {
    for_each = var.noncurrent_days == null ? [] : [var.noncurrent_days]

    content {
      id     = "old-versions"
      status = "Enabled"

      filter {}

      noncurrent_version_expiration {
        noncurrent_days = rule.value
      }
    }
  }

  dynamic "rule" {
    for_each = toset(var.cold.prefixes)

    content {
      id     = "cold-${trimsuffix(rule.value, "/")}"
      status = "Enabled"

      # S3 leaves objects below 128 KiB where they are unless a filter names a size.
      filter {
        prefix = var.cold.small ? null : rule.value

        dynamic "and" {
          for_each = var.cold.small ? [rule.value] : []

          content {
            prefix                   = and.value
            object_size_greater_than = 1
          }
        }
      }

      transition {
        days          = var.cold.days
        storage_class = "GLACIER_IR"
      }
    }
  }

  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_policy" "this" {
  count  = length(local.statements) > 0 ? 1 : 0
  bucket = aws_s3_bucket.this.id
  policy = "{\"Version\":\"2012-10-17\",\"Statement\":[${join(",", local.statements)}]}"

  # S3 refuses a policy while another setting of the same bucket is being changed.
  depends_on = [aws_s3_bucket_public_access_block.this]
}
