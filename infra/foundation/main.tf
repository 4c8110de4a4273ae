locals {
  prefix    = "${var.name}-${var.stage}"
  partition = startswith(var.region, "cn-") ? "aws-cn" : startswith(var.region, "us-gov-") ? "aws-us-gov" : "aws"
  tags      = merge(var.tags, { Platform = var.name, Stage = var.stage, Tier = "foundation" })

  # The app tier names functions so: <prefix>-<name in schema/routes.json>.
  function_prefix = "${local.prefix}-"

  # ARNs up to the resource, for policies: arn.lambda is arn:aws:lambda:<region>:<account>.
  arn = { for service in ["kms", "lambda", "logs", "secretsmanager", "ssm"] :
    service => "arn:${local.partition}:${service}:${var.region}:${var.account_id}"
  }
}
