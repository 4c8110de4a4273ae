# Connections shared among functions, if asked for: RDS Proxy. Both ways are by tokens of IAM, which the provider's own resource cannot say (it wants a
# password for each role); CloudFormation can. Migrations go to the database itself.

locals {
  proxied = var.database_proxy

  # The proxy's id is the end of its ARN, and what rds-db:connect names.
  proxy_id = local.proxied ? regex("[^:]+$", aws_cloudformation_stack.proxy[0].outputs["Arn"]) : ""

  # Where functions connect, and as what they may.
  front         = local.proxied ? aws_cloudformation_stack.proxy[0].outputs["Endpoint"] : local.host
  front_connect = local.proxied ? { for role, arn in local.connect : role => replace(arn, local.resource_id, local.proxy_id) } : local.connect
}

resource "aws_cloudformation_stack" "proxy" {
  count = local.proxied ? 1 : 0

  name          = "${local.prefix}-proxy"
  template_body = file("${path.module}/proxy.cfn.json")
  parameters = {
    Name          = local.prefix
    RoleArn       = aws_iam_role.proxy[0].arn
    Subnets       = join(",", var.foundation.database_subnet_ids)
    SecurityGroup = var.foundation.database_security_group_id
    Cluster       = local.aurora ? local.database : ""
    Server        = local.aurora ? "" : local.database
  }

  depends_on = [aws_iam_role_policy.proxy, aws_rds_cluster_instance.this, aws_db_instance.this]
}

resource "aws_iam_role" "proxy" {
  count = local.proxied ? 1 : 0

  name        = "${local.prefix}-proxy"
  description = "RDS Proxy, to connect as the roles of functions"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "rds.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "proxy" {
  count = local.proxied ? 1 : 0

  name = "connect"
  role = aws_iam_role.proxy[0].id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = ["rds-db:connect"], Resource = [for role in ["app", "ledger", "reader"] : local.connect[role]] }]
  })
}

# The proxy is in the database's security group, and the only one in it that calls.
resource "aws_vpc_security_group_ingress_rule" "proxy" {
  count = local.proxied ? 1 : 0

  security_group_id            = var.foundation.database_security_group_id
  referenced_security_group_id = var.foundation.database_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
  description                  = "PostgreSQL from the proxy"
}

resource "aws_vpc_security_group_egress_rule" "proxy" {
  count = local.proxied ? 1 : 0

  security_group_id            = var.foundation.database_security_group_id
  referenced_security_group_id = var.foundation.database_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
  description                  = "PostgreSQL, from the proxy"
}
