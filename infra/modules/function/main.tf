# A function of the platform on Lambda. Its zip goes there by a bucket: with a zip of this machine the provider makes one function after the other, and
# waits each time until Lambda is ready, so that a deployment of all took ten times as long.

resource "aws_s3_object" "code" {
  bucket      = var.bucket
  key         = "${var.name}.zip"
  source      = var.row.zip
  source_hash = local.hash
}

locals {
  hash = fileexists(var.row.zip) ? filebase64sha256(var.row.zip) : null # a missing one is told of by the tier, in one line for all
}

resource "aws_lambda_function" "this" {
  function_name = var.name
  description   = join(", ", var.row.on)
  role          = var.role_arn
  tags          = var.tags

  runtime           = "provided.al2023"
  architectures     = ["arm64"]
  handler           = "bootstrap"
  s3_bucket         = aws_s3_object.code.bucket
  s3_key            = aws_s3_object.code.key
  s3_object_version = aws_s3_object.code.version_id
  source_code_hash  = local.hash

  timeout                        = var.row.timeout
  memory_size                    = var.row.memory
  reserved_concurrent_executions = var.row.reserved

  vpc_config {
    subnet_ids         = var.subnet_ids
    security_group_ids = [var.security_group_id]
  }

  environment {
    variables = var.settings
  }

  tracing_config {
    mode = "Active"
  }

  # JSON, for metric filters read members of it.
  logging_config {
    log_format            = "JSON"
    application_log_level = var.log_level
    system_log_level      = "WARN"
    log_group             = var.log_group
  }
}
