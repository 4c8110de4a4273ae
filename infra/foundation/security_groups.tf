# Who may open a connection to whom. What runs code (functions, and the agents' runtime) calls; the database and the endpoints are called; nobody else.

locals {
  callers = toset(["functions", "runtime"])
  # A caller's way to the internet, one rule a port.
  outward = { for pair in setproduct(local.callers, [for p in var.egress_ports : tostring(p)]) : "${pair[0]}-${pair[1]}" => { caller = pair[0], port = tonumber(pair[1]) }
    if var.nat_gateways != "none"
  }
}

resource "aws_security_group" "caller" {
  for_each = local.callers

  name        = "${local.prefix}-${each.key}"
  description = "${local.prefix} ${each.key}: called by nobody over the network"
  vpc_id      = aws_vpc.this.id

  tags = { Name = "${local.prefix}-${each.key}" }
}

resource "aws_security_group" "database" {
  name        = "${local.prefix}-database"
  description = "${local.prefix} database: called by functions and runtime, calls nobody"
  vpc_id      = aws_vpc.this.id

  tags = { Name = "${local.prefix}-database" }
}

resource "aws_security_group" "endpoints" {
  name        = "${local.prefix}-endpoints"
  description = "${local.prefix} endpoints of AWS services: called by functions and runtime"
  vpc_id      = aws_vpc.this.id

  tags = { Name = "${local.prefix}-endpoints" }
}

resource "aws_vpc_security_group_ingress_rule" "database" {
  for_each = local.callers

  security_group_id            = aws_security_group.database.id
  referenced_security_group_id = aws_security_group.caller[each.key].id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
  description                  = "PostgreSQL from ${each.key}"
}

resource "aws_vpc_security_group_egress_rule" "database" {
  for_each = local.callers

  security_group_id            = aws_security_group.caller[each.key].id
  referenced_security_group_id = aws_security_group.database.id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
  description                  = "PostgreSQL"
}

resource "aws_vpc_security_group_ingress_rule" "endpoints" {
  for_each = local.callers

  security_group_id            = aws_security_group.endpoints.id
  referenced_security_group_id = aws_security_group.caller[each.key].id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
  description                  = "AWS services from ${each.key}"
}

resource "aws_vpc_security_group_egress_rule" "endpoints" {
  for_each = local.callers

  security_group_id            = aws_security_group.caller[each.key].id
  referenced_security_group_id = aws_security_group.endpoints.id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
  description                  = "AWS services"
}

resource "aws_vpc_security_group_egress_rule" "s3" {
  for_each = local.callers

  security_group_id = aws_security_group.caller[each.key].id
  prefix_list_id    = aws_vpc_endpoint.s3.prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  description       = "S3"
}

resource "aws_vpc_security_group_egress_rule" "internet" {
  for_each = local.outward

  security_group_id = aws_security_group.caller[each.value.caller].id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
  description       = "Tools, task trackers, MCP servers and AWS services without an endpoint"
}
