# The agent runtime: the turn's code in a container, with what the function dispatch-turn needs. The provider has no resource for it, CloudFormation has.

locals {
  with_runtime = var.agent_runtime && var.runtime_image_tag != null # without a tag, terraform_data.ready says what to do
  turn         = "dispatch-turn"
  runtime_name = replace("${local.prefix}_runtime", "-", "_") # AgentCore allows no hyphen
  runtime_arn  = local.with_runtime ? aws_cloudformation_stack.runtime[0].outputs["RuntimeArn"] : ""

  # The runtime runs turns itself: it needs what the function that would start it needs, but for that.
  runtime_needs = [for need in local.needs[local.turn] : need if need != "runtime"]

  runtime = jsondecode(file("${path.module}/runtime.cfn.json"))
  runtime_template = merge(local.runtime, { Resources = { Runtime = merge(local.runtime.Resources.Runtime, {
    Properties = merge(local.runtime.Resources.Runtime.Properties, { EnvironmentVariables = merge({ AWS_REGION = var.region }, local.telemetry, var.otlp_endpoint == null ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT = var.otlp_endpoint }, concat([for need in local.runtime_needs : try(local.grants[need].env, {})], [for need in local.runtime_needs : { CODE_INTERPRETER_ID = local.interpreter_id } if need == "sandbox"])...) })
  }) } })

  repository     = var.data.runtime_repository_url
  repository_arn = "${local.arn}:ecr:${local.here}:repository/${try(regex("^[^/]+/(.+)$", local.repository)[0], "none")}"
}

resource "aws_cloudformation_stack" "runtime" {
  count = local.with_runtime ? 1 : 0

  name          = "${local.prefix}-runtime"
  template_body = jsonencode(local.runtime_template)
  parameters = {
    Name           = local.runtime_name
    Image          = "${local.repository}:${var.runtime_image_tag}"
    RoleArn        = aws_iam_role.runtime[0].arn
    Subnets        = join(",", var.foundation.private_subnet_ids)
    SecurityGroups = join(",", [var.foundation.runtime_security_group_id])
  }

  # New code serves a database that it knows; and AgentCore tries the role at once, which by then has been there for a while.
  depends_on = [terraform_data.ready, aws_iam_role_policy.runtime, aws_lambda_invocation.before]
}

resource "aws_iam_role" "runtime" {
  count = local.with_runtime ? 1 : 0

  name               = "${local.prefix}-runtime"
  description        = "The agent runtime, which needs what ${local.turn} needs"
  assume_role_policy = local.assumed_by["bedrock-agentcore"]
}

resource "aws_iam_role_policy" "runtime" {
  count = local.with_runtime ? 1 : 0

  name = "needs"
  role = aws_iam_role.runtime[0].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        # The services allow no narrower resource for the first two.
        { Effect = "Allow", Action = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"], Resource = ["*"] },
        { Effect = "Allow", Action = ["ecr:GetAuthorizationToken"], Resource = ["*"] },
        { Effect = "Allow", Action = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"], Resource = [local.repository_arn] },
        {
          Effect   = "Allow"
          Action   = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
          Resource = ["${local.arn}:logs:${local.here}:log-group:/aws/bedrock-agentcore/runtimes/*"]
        },
      ],
      [
        { Effect = "Allow", Action = ["logs:DescribeLogGroups"], Resource = ["${local.arn}:logs:${local.here}:log-group:*"] },
        { Effect = "Allow", Action = ["cloudwatch:PutMetricData"], Resource = ["*"], Condition = { StringEquals = { "cloudwatch:namespace" = "bedrock-agentcore" } } },
      ],
      flatten([for need in local.runtime_needs : try(local.grants[need].allow, [])]),
    )
  })
}
