# AWS services that functions call, reached within the network. Their policies are a second fence: through them only this account's principals call, and
# only what belongs to the deployment, so that a stolen key of another account carries nothing out.

locals {
  ours = { StringEquals = { "aws:PrincipalAccount" = var.account_id } }

  # What each endpoint may touch. A service without a line here is bound to this account's principals only: of states, a task's
  # answer names nothing but its token.
  endpoint_resources = {
    bedrock-runtime = [
      "arn:${local.partition}:bedrock:*::foundation-model/*", # an inference profile calls models in several regions
      "arn:${local.partition}:bedrock:${var.region}:${var.account_id}:inference-profile/*",
      "arn:${local.partition}:bedrock:${var.region}:${var.account_id}:application-inference-profile/*",
      "arn:${local.partition}:bedrock:${var.region}:${var.account_id}:guardrail/*",
    ]
    kms            = ["${local.arn.kms}:key/*"]
    lambda         = ["${local.arn.lambda}:function:${local.function_prefix}*"]
    secretsmanager = ["${local.arn.secretsmanager}:secret:${local.prefix}/*"]
    ssm            = ["${local.arn.ssm}:parameter/${local.prefix}/*"]
  }
}

resource "aws_vpc_endpoint" "interface" {
  for_each = toset(var.interface_endpoints)

  vpc_id              = aws_vpc.this.id
  service_name        = "com.amazonaws.${var.region}.${each.key}"
  vpc_endpoint_type   = "Interface"
  private_dns_enabled = true
  subnet_ids          = [for zone in local.zones : aws_subnet.private[zone].id]
  security_group_ids  = [aws_security_group.endpoints.id]

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = "*" } # narrowed by the condition: an endpoint's policy cannot name a foreign account's principals otherwise
      Action    = "${lookup({ bedrock-runtime = "bedrock" }, each.key, split(".", each.key)[0])}:*"
      Resource  = lookup(local.endpoint_resources, each.key, ["*"])
      Condition = local.ours
    }]
  })

  tags = { Name = "${local.prefix}-${each.key}" }
}

resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.this.id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [for zone in local.zones : aws_route_table.private[zone].id]

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "BucketsOfThisDeployment"
        Effect    = "Allow"
        Principal = { AWS = "*" }
        Action    = "s3:*"
        Resource  = ["arn:${local.partition}:s3:::${local.prefix}-*", "arn:${local.partition}:s3:::${local.prefix}-*/*"]
        Condition = { StringEquals = { "aws:PrincipalAccount" = var.account_id, "aws:ResourceAccount" = var.account_id } }
      },
      {
        # The layers of a container image are in a bucket of the registry's.
        Sid       = "ContainerImages"
        Effect    = "Allow"
        Principal = { AWS = "*" }
        Action    = "s3:GetObject"
        Resource  = ["arn:${local.partition}:s3:::prod-${var.region}-starport-layer-bucket/*"]
      },
    ]
  })

  tags = { Name = "${local.prefix}-s3" }
}
