# One role for each distinct set of needs: two functions that need the same may do the same, and nothing more.

locals {
  set_of = { for name, needs in local.needs : name => length(needs) == 0 ? "none" : join(" ", needs) }

  roles = { for set in distinct(values(local.set_of)) : set => {
    functions = [for name, of in local.set_of : name if of == set]
    needs     = [for need in split(" ", set) : need if set != "none"]
    name      = "${local.prefix}-${substr(sha256(set), 0, 10)}" # a set's words are too long for a name
  } }
}

resource "aws_iam_role" "function" {
  for_each = local.roles

  name        = each.value.name
  description = "Functions of ${local.prefix} that need: ${join(", ", each.value.needs)}"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }]
  })
  depends_on = [terraform_data.ready]
}

resource "aws_iam_role_policy" "function" {
  for_each = local.roles

  name = "needs"
  role = aws_iam_role.function[each.key].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      local.run,
      [{
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = [for name in each.value.functions : "${local.arn}:logs:${local.here}:log-group:/aws/lambda/${local.prefix}-${name}:*"]
      }],
      [for statement in local.give_up : statement if anytrue([for name in each.value.functions : local.rows[name].async])],
      flatten([for need in each.value.needs : try(local.grants[need].allow, [])]),
    )
  })
}

locals {
  # What every function takes to run in a VPC, traced. The services allow no narrower resource for what has "*" here; the network interfaces' ids
  # are not known before. Lambda itself uses these, before the function's code runs: the code may not (the last statement).
  run = [
    { Effect = "Allow", Action = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"], Resource = ["*"] },
    { Effect = "Allow", Action = ["ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"], Resource = ["*"] },
    {
      Effect   = "Allow"
      Action   = ["ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"]
      Resource = ["${local.arn}:ec2:${local.here}:*/*"]
    },
    {
      Effect = "Deny"
      Action = ["ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:DetachNetworkInterface",
      "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"]
      Resource  = ["*"]
      Condition = { ArnLike = { "lambda:SourceFunctionArn" = ["${local.arn}:lambda:${local.here}:function:${local.prefix}-*"] } }
    },
  ]

  # What nobody waits for goes to the dead letters when it fails for good.
  dead_letters = "${local.prefix}-dead-letters"
  give_up      = [{ Effect = "Allow", Action = ["sqs:SendMessage"], Resource = ["${local.arn}:sqs:${local.here}:${local.dead_letters}"] }]
}
