# State machines: schema/workflow/<name>.asl.json, whose ${placeholders} are the functions of its `state` rows.

locals {
  machines = { for file in fileset("${local.root}/schema/workflow", "*.asl.json") : replace(trimsuffix(file, ".asl.json"), "_", "-") => {
    tasks = [for name, machine in local.tasks : name if machine == replace(trimsuffix(file, ".asl.json"), "_", "-")]
    # What stands behind each "${" begins with a function's name and "}".
    definition = replace(join("", [for i, piece in split("$${", file("${local.root}/schema/workflow/${file}")) : i == 0 ? piece :
      "${try(local.rows[split("}", piece)[0]].arn, "no function ${split("}", piece)[0]}")}${substr(piece, length(split("}", piece)[0]) + 1, -1)}"
    ]), "\"arn:aws:states:::", "\"${local.arn}:states:::") # the services that a state machine calls have no region, but a partition
  } }
}

resource "aws_sfn_state_machine" "platform" {
  for_each = local.machines

  name       = "${local.prefix}-${each.key}"
  role_arn   = aws_iam_role.workflow[each.key].arn
  definition = each.value.definition

  # Without what is said in threads: it is in the database, under its tenant.
  logging_configuration {
    level                  = "ERROR"
    include_execution_data = false
    log_destination        = "${aws_cloudwatch_log_group.workflow[each.key].arn}:*"
  }

  tracing_configuration {
    enabled = true
  }

  depends_on = [aws_iam_role_policy.workflow, module.function]
}

resource "aws_cloudwatch_log_group" "workflow" {
  for_each = local.machines

  name              = "/aws/vendedlogs/states/${local.prefix}-${each.key}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.foundation.key_arns["logs"]
}

resource "aws_iam_role" "workflow" {
  for_each = local.machines

  name               = "${local.prefix}-workflow-${each.key}"
  description        = "The state machine ${each.key}, for its tasks"
  assume_role_policy = local.assumed_by["states"]
}

resource "aws_iam_role_policy" "workflow" {
  for_each = local.machines

  name = "tasks"
  role = aws_iam_role.workflow[each.key].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [{ Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = [for name in each.value.tasks : local.rows[name].arn] }],
      local.observed,
    )
  })
}

locals {
  # What every state machine takes to be traced and logged. The services allow no narrower resource.
  observed = [
    { Effect = "Allow", Action = ["xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets"], Resource = ["*"] },
    {
      Effect = "Allow"
      Action = ["logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy",
      "logs:DescribeResourcePolicies", "logs:DescribeLogGroups"]
      Resource = ["*"]
    },
  ]
}
