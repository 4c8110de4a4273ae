# Three kinds of subnet in each zone: functions (out through NAT, if there is one), database (nowhere out), and public ones that hold nothing but NAT gateways.

locals {
  zones     = length(var.availability_zones) > 0 ? var.availability_zones : ["${var.region}a", "${var.region}b"]
  zone      = { for i, name in local.zones : name => i }
  nat_zones = { none = [], one = slice(local.zones, 0, 1), per-zone = local.zones }[var.nat_gateways]
}

resource "aws_vpc" "this" {
  cidr_block           = var.vpc_cidr
  enable_dns_support   = true
  enable_dns_hostnames = true # the endpoints' private names need it

  tags = { Name = local.prefix }

  lifecycle {
    precondition {
      condition     = alltrue([for zone in local.zones : startswith(zone, var.region)])
      error_message = "availability_zones are not all in the region ${var.region}: ${join(", ", local.zones)}."
    }
    precondition {
      condition     = var.dns_zone_id == "" || var.domain_name != ""
      error_message = "dns_zone_id is given without domain_name: which domain is the deployment's in that zone?"
    }
    precondition {
      condition     = var.invitations_from == "" || var.email_domain != "" && endswith(var.invitations_from, "@${var.email_domain}")
      error_message = "invitations_from must be an address at email_domain, for SES sends for that domain only."
    }
  }
}

# Whatever names no security group gets this one, and it lets nothing through.
resource "aws_default_security_group" "nothing" {
  vpc_id = aws_vpc.this.id

  tags = { Name = "${local.prefix}-default-nothing" }
}

resource "aws_subnet" "private" {
  for_each = local.zone

  vpc_id                  = aws_vpc.this.id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.vpc_cidr, 4, each.value)
  map_public_ip_on_launch = false

  tags = { Name = "${local.prefix}-private-${each.key}" }
}

resource "aws_subnet" "database" {
  for_each = local.zone

  vpc_id                  = aws_vpc.this.id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.vpc_cidr, 8, 224 + each.value)
  map_public_ip_on_launch = false

  tags = { Name = "${local.prefix}-database-${each.key}" }
}

resource "aws_route_table" "private" {
  for_each = local.zone

  vpc_id = aws_vpc.this.id

  tags = { Name = "${local.prefix}-private-${each.key}" }
}

resource "aws_route_table_association" "private" {
  for_each = local.zone

  subnet_id      = aws_subnet.private[each.key].id
  route_table_id = aws_route_table.private[each.key].id
}

# Local routes only: the database answers within the network and calls nobody.
resource "aws_route_table" "database" {
  vpc_id = aws_vpc.this.id

  tags = { Name = "${local.prefix}-database" }
}

resource "aws_route_table_association" "database" {
  for_each = local.zone

  subnet_id      = aws_subnet.database[each.key].id
  route_table_id = aws_route_table.database.id
}

# ---- the way to the internet

resource "aws_subnet" "public" {
  for_each = toset(local.nat_zones)

  vpc_id                  = aws_vpc.this.id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.vpc_cidr, 8, 240 + local.zone[each.key])
  map_public_ip_on_launch = false # a NAT gateway brings its address along

  tags = { Name = "${local.prefix}-public-${each.key}" }
}

resource "aws_internet_gateway" "this" {
  count  = length(local.nat_zones) > 0 ? 1 : 0
  vpc_id = aws_vpc.this.id

  tags = { Name = local.prefix }
}

resource "aws_route_table" "public" {
  count  = length(local.nat_zones) > 0 ? 1 : 0
  vpc_id = aws_vpc.this.id

  tags = { Name = "${local.prefix}-public" }
}

resource "aws_route" "public" {
  count = length(local.nat_zones) > 0 ? 1 : 0

  route_table_id         = aws_route_table.public[0].id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this[0].id
}

resource "aws_route_table_association" "public" {
  for_each = toset(local.nat_zones)

  subnet_id      = aws_subnet.public[each.key].id
  route_table_id = aws_route_table.public[0].id
}

resource "aws_eip" "nat" {
  for_each = toset(local.nat_zones)
  domain   = "vpc"

  tags = { Name = "${local.prefix}-nat-${each.key}" }
}

resource "aws_nat_gateway" "this" {
  for_each = toset(local.nat_zones)

  allocation_id = aws_eip.nat[each.key].id
  subnet_id     = aws_subnet.public[each.key].id

  tags = { Name = "${local.prefix}-${each.key}" }

  depends_on = [aws_route.public]
}

resource "aws_route" "nat" {
  for_each = length(local.nat_zones) > 0 ? local.zone : {}

  route_table_id         = aws_route_table.private[each.key].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.this[var.nat_gateways == "per-zone" ? each.key : local.nat_zones[0]].id
}

# ---- refused connections

resource "aws_cloudwatch_log_group" "flow" {
  count = var.flow_log_days > 0 ? 1 : 0

  name              = "/${local.prefix}/network"
  retention_in_days = var.flow_log_days
  kms_key_id        = module.key["logs"].arn
}

resource "aws_iam_role" "flow" {
  count = var.flow_log_days > 0 ? 1 : 0

  name = "${local.prefix}-network-log"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "flow" {
  count = var.flow_log_days > 0 ? 1 : 0

  name = "write"
  role = aws_iam_role.flow[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
        Resource = ["${local.arn.logs}:log-group:/${local.prefix}/network", "${local.arn.logs}:log-group:/${local.prefix}/network:log-stream:*"]
      },
      { Effect = "Allow", Action = ["logs:DescribeLogGroups"], Resource = ["${local.arn.logs}:log-group:*"] },
    ]
  })
}

resource "aws_flow_log" "refused" {
  count = var.flow_log_days > 0 ? 1 : 0

  vpc_id          = aws_vpc.this.id
  traffic_type    = "REJECT" # what was let through is the database's and the functions' own to log
  log_destination = aws_cloudwatch_log_group.flow[0].arn
  iam_role_arn    = aws_iam_role.flow[0].arn

  tags = { Name = "${local.prefix}-refused" }
}
