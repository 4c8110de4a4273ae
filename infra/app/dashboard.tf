# One page to look at when an alarm has gone off.

locals {
  lambda = { for metric, stat in { Invocations = "Sum", Errors = "Sum", Throttles = "Sum", ConcurrentExecutions = "Maximum", Duration = "p99" } : metric =>
    [for name in sort(keys(local.rows)) : ["AWS/Lambda", metric, "FunctionName", "${local.prefix}-${name}", { stat = stat }]]
  }
  graphs = [
    { title = "Calls by function", metrics = local.lambda["Invocations"] },
    { title = "Errors and throttles by function", metrics = concat(local.lambda["Errors"], local.lambda["Throttles"]) },
    { title = "Duration, p99 by function (ms)", metrics = local.lambda["Duration"] },
    { title = "Concurrency by function", metrics = local.lambda["ConcurrentExecutions"] },
    { title = "HTTP API", metrics = [for metric in ["Count", "4xx", "5xx"] : ["AWS/ApiGateway", metric, "ApiId", aws_apigatewayv2_api.platform.id, { stat = "Sum" }]] },
    { title = "HTTP API latency (ms)", metrics = [for stat in ["p50", "p99"] : ["AWS/ApiGateway", "Latency", "ApiId", aws_apigatewayv2_api.platform.id, { stat = stat }]] },
    { title = "GraphQL API errors", metrics = [for metric in ["4XXError", "5XXError"] : ["AWS/AppSync", metric, "GraphQLAPIId", aws_appsync_graphql_api.platform.id, { stat = "Sum" }]] },
    { title = "Subscriptions", metrics = [for metric in ["ActiveConnections", "ActiveSubscriptions"] : ["AWS/AppSync", metric, "GraphQLAPIId", aws_appsync_graphql_api.platform.id, { stat = "Maximum" }]] },
    { title = "Turns by how they ended", metrics = [for status in ["succeeded", "failed", "cancelled", "interrupted"] : [local.namespace, "turns", "status", status, { stat = "Sum" }]] },
    { title = "Turns by phase, p95 (ms)", metrics = [for name in ["turn.perception", "turn.planning", "turn.action", "turn.feedback"] : [local.namespace, name, { stat = "p95" }]] },
    { title = "Calls in a turn", metrics = [for name in ["turn.model_calls", "turn.tool_calls"] : [local.namespace, name, { stat = "Average" }]] },
    { title = "Tokens by model", metrics = [for name in ["tokens.input", "tokens.output", "tokens.cached"] : [{ expression = "SEARCH('{\"${local.namespace}\",model} MetricName=\"${name}\"', 'Sum')", label = name }]] },
    { title = "Cost by model (USD)", metrics = [[{ expression = "SEARCH('{\"${local.namespace}\",model} MetricName=\"cost\"', 'Sum')", label = "cost" }]] },
    { title = "Denials", metrics = [for name in ["denials.tool", "denials.approval", "denials.guardrail", "denials.budget", "denials.rate_limit"] : [local.namespace, name, { stat = "Sum" }]] },
    { title = "Audit log: how late (s)", metrics = [for name, figure in local.figures : [local.namespace, name, { stat = "Maximum" }] if figure.unit == "Seconds"] },
    { title = "Audit log: events", metrics = [for name, figure in local.figures : [local.namespace, name, { stat = "Maximum" }] if figure.unit == "Count"] },
    { title = "Error lines", metrics = [for name in ["error.lines", "audit.alarms"] : [local.namespace, name, { stat = "Sum" }]] },
    { title = "Executions of the platform's state machines", metrics = flatten([for machine in aws_sfn_state_machine.platform : [for metric in values(local.endings) : [["AWS/States", metric, "StateMachineArn", machine.arn, { stat = "Sum" }]]]]) },
    { title = "Runs of routines", metrics = [for metric in values(local.endings) : [{ expression = "SUM(SEARCH('{AWS/States,StateMachineArn} MetricName=\"${metric}\" ${replace(local.prefix, "-", " ")} ${local.routines}', 'Sum'))", label = metric }]] },
    { title = "Schedules: found to differ, and missed", metrics = [for name in ["schedule.drift", "schedule.late"] : [local.namespace, name, { stat = "Maximum" }]] },
    { title = "Deliveries and mails that are nobody's, and deliveries that say nothing", metrics = [for name in ["integrations.unknown", "integrations.ignored"] : [local.namespace, name, { stat = "Sum" }]] },
    { title = "Replies and task events: how late (s)", metrics = [for name in ["integrations.replies.lateness", "tasks.events.lateness"] : [local.namespace, name, { stat = "Maximum" }]] },
    { title = "Dead letters", metrics = [for queue in [aws_sqs_queue.dead_letters, aws_sqs_queue.schedule_dead_letters] : ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queue.name, { stat = "Maximum" }]] },
  ]
}

resource "aws_cloudwatch_dashboard" "platform" {
  dashboard_name = local.prefix
  dashboard_body = jsonencode({
    widgets = concat([{
      type       = "alarm", x = 0, y = 0, width = 24, height = 3
      properties = { title = "Alarms", alarms = concat([for alarm in local.singles : alarm.arn], [for alarm in local.many : alarm.arn]) }
      }], [for i, graph in local.graphs : {
      type       = "metric", x = i % 2 * 12, y = 3 + floor(i / 2) * 6, width = 12, height = 6
      properties = { title = graph.title, region = var.region, metrics = graph.metrics, view = "timeSeries", period = 300 }
    }])
  })
}

locals {
  singles = [aws_cloudwatch_metric_alarm.audit_alarm, aws_cloudwatch_metric_alarm.error_lines, aws_cloudwatch_metric_alarm.dead_letters, aws_cloudwatch_metric_alarm.schedule_dead_letters, aws_cloudwatch_metric_alarm.scheduler, aws_cloudwatch_metric_alarm.turns_failed]
  many = concat(values(aws_cloudwatch_metric_alarm.group), values(aws_cloudwatch_metric_alarm.heartbeat), values(aws_cloudwatch_metric_alarm.figure),
  values(aws_cloudwatch_metric_alarm.gateway), values(aws_cloudwatch_metric_alarm.executions))
}
