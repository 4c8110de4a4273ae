# Alarms look at what AWS counts, and at what the functions' log lines say (pkg/audit/ledger writes the figures). Those of functions are made of
# groups, by metric math: an alarm for each function would be hundreds, and one for the account would hear other people's functions too.

locals {
  namespace = "${var.name}/${var.stage}"
  to        = [aws_sns_topic.alarms.arn]

  # ---- What Lambda counts, by package; an alarm can hold ten metrics.
  counts = {
    Errors                      = { of = keys(local.rows), what = "crashed, ran out of time, or failed at what nobody waits for" }
    Throttles                   = { of = [for name, row in local.rows : name if row.reserved < 0], what = "were refused for want of concurrency" } # with a reservation, refusing is the point
    DestinationDeliveryFailures = { of = [for name, row in local.rows : name if row.async], what = "failed, and could not be put to the dead letters" }
  }
  groups = merge(flatten([for metric, count in local.counts : [
    for package in distinct([for name in count.of : local.rows[name].package]) : {
      for i, chunk in chunklist([for name in count.of : name if local.rows[name].package == package], 10) :
      "${lower(metric)}-${package}${i == 0 ? "" : "-${i + 1}"}" => { metric = metric, functions = chunk, what = count.what, package = package }
    }
  ]])...)

  # ---- Heartbeats: a schedule whose function has not ended well for several times in a row. Of `rate(…)` up to a day; a `cron(…)` has no period.
  minutes = { minute = 1, minutes = 1, hour = 60, hours = 60, day = 1440, days = 1440 }
  rates = { for key, schedule in local.schedules : key => {
    function = schedule.function
    minutes  = tonumber(regex("^rate\\((\\d+) (\\w+)\\)$", schedule.expression)[0]) * local.minutes[regex("^rate\\((\\d+) (\\w+)\\)$", schedule.expression)[1]]
  } if can(regex("^rate\\((\\d+) (\\w+)\\)$", schedule.expression)) }
  heartbeats = { for key, rate in local.rates : key => {
    function = rate.function
    period   = rate.minutes * 60
    # A run that takes its whole timeout may keep others from starting: that is no silence yet.
    periods = max(rate.minutes < 60 ? 5 : 2, ceil(local.rows[rate.function].timeout / (rate.minutes * 60)) + 3)
  } if rate.minutes <= 1440 }

  # ---- Figures of the log: pkg/metric writes lines of which CloudWatch makes metrics.
  figures = {
    "audit.drained"         = { function = "drain-outbox", unit = "Count" }
    "audit.quarantined.new" = { function = "drain-outbox", unit = "Count" }
    "audit.witness.failed"  = { function = "publish-anchor", unit = "Count" }
    "audit.pending"         = { function = "watch-ledger", unit = "Count" }
    "audit.pending.age"     = { function = "watch-ledger", unit = "Seconds" }
    "audit.quarantined"     = { function = "watch-ledger", unit = "Count" }
    "audit.beacon.age"      = { function = "watch-ledger", unit = "Seconds" }
    "audit.anchor.lateness" = { function = "watch-ledger", unit = "Seconds" }
  }

  # Limits of pkg/audit/ledger's own watch; it writes an Error line beyond them, these alarms also say when it is over. And what the check of tenants'
  # schedules had to mend: once is what a crash between two services leaves. And for how long the sweeps have left something waiting that was due; a provider
  # that refuses it makes nothing late, for then it is due later.
  limits = {
    drain-lag      = { figure = "audit.pending.age", above = 180, periods = 3, what = "Audit events wait for more than 3 minutes to be chained: see drain-outbox." }
    quarantine     = { figure = "audit.quarantined", above = 0, periods = 1, what = "Audit events are in quarantine: their MAC or form was wrong. Somebody may have written into the outbox." }
    beacon-late    = { figure = "audit.beacon.age", above = 180, periods = 3, what = "No beacon in the audit bucket tells of events that are minutes old: see drain-outbox." }
    cadence-missed = { figure = "audit.anchor.lateness", above = var.anchor_interval_minutes * 60, periods = 2, what = "An anchor of the audit log is more than a cadence late: see publish-anchor." }
    schedule-drift = { figure = "schedule.drift", above = 0, periods = 2, seconds = 300, what = "Tenants' schedules in EventBridge Scheduler are not those of the database, twice in a row: see reconcile-schedules." }
    replies-late   = { figure = "integrations.replies.lateness", above = 900, periods = 3, what = "Agents' replies to conversations outside wait for more than 15 minutes to be posted: see deliver-replies." }
    events-late    = { figure = "tasks.events.lateness", above = 900, periods = 3, what = "Events of task trackers wait for more than 15 minutes to be put into their threads: see process-task-event." }
    witness-failed = { figure = "audit.witness.failed", above = 0, periods = 3, what = "Anchors go out without their witness's signature." }
  }
}

# A caller is told "internal error" and gets an answer, so Lambda counts no error: the log's Error lines do. One metric for all functions.
resource "aws_cloudwatch_log_metric_filter" "error_lines" {
  for_each = local.rows

  name           = "error-lines"
  log_group_name = aws_cloudwatch_log_group.function[each.key].name
  pattern        = "{ $.level = \"ERROR\" }"

  metric_transformation {
    namespace     = local.namespace
    name          = "error.lines"
    value         = "1"
    default_value = "0"
    unit          = "Count"
  }
}

# Error lines of the ledger begin so when the evidence itself is in doubt.
resource "aws_cloudwatch_log_metric_filter" "audit_alarm" {
  for_each = toset(distinct([for figure in local.figures : figure.function]))

  name           = "audit-alarm"
  log_group_name = aws_cloudwatch_log_group.function[each.key].name
  pattern        = "{ $.level = \"ERROR\" && $.message = \"audit alarm: *\" }"

  metric_transformation {
    namespace     = local.namespace
    name          = "audit.alarms"
    value         = "1"
    default_value = "0"
    unit          = "Count"
  }
}

resource "aws_cloudwatch_metric_alarm" "group" {
  for_each = local.groups

  alarm_name          = "${local.prefix}-${each.key}"
  alarm_description   = "Functions of ${each.value.package} ${each.value.what}: ${join(", ", each.value.functions)}."
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to
  ok_actions          = local.to

  metric_query {
    id          = "total"
    expression  = "SUM(METRICS())"
    label       = each.key
    return_data = true
  }

  dynamic "metric_query" {
    for_each = { for i, name in each.value.functions : "m${i}" => name }
    content {
      id = metric_query.key
      metric {
        namespace   = "AWS/Lambda"
        metric_name = each.value.metric
        dimensions  = { FunctionName = "${local.prefix}-${metric_query.value}" }
        period      = 300
        stat        = "Sum"
      }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "heartbeat" {
  for_each = local.heartbeats

  alarm_name          = "${local.prefix}-heartbeat-${each.key}"
  alarm_description   = "${each.value.function} should have ended well at least once in ${each.value.periods * each.value.period / 60} minutes and has not."
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  evaluation_periods  = each.value.periods
  treat_missing_data  = "breaching" # silence is what it listens for
  alarm_actions       = local.to
  ok_actions          = local.to

  metric_query {
    id          = "ended_well"
    expression  = "FILL(runs, 0) - FILL(failed, 0)"
    label       = "ended well"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = { runs = "Invocations", failed = "Errors" }
    content {
      id = metric_query.key
      metric {
        namespace   = "AWS/Lambda"
        metric_name = metric_query.value
        dimensions  = { FunctionName = "${local.prefix}-${each.value.function}" }
        period      = each.value.period
        stat        = "Sum"
      }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "figure" {
  for_each = { for name, limit in local.limits : name => limit if name != "witness-failed" || var.anchor_witness != null }

  alarm_name          = "${local.prefix}-${each.key}"
  alarm_description   = each.value.what
  namespace           = local.namespace
  metric_name         = each.value.figure
  statistic           = "Maximum"
  period              = try(each.value.seconds, 60)
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.above
  evaluation_periods  = each.value.periods
  treat_missing_data  = "notBreaching" # that nobody looks is the heartbeat's matter
  alarm_actions       = local.to
  ok_actions          = local.to
}

resource "aws_cloudwatch_metric_alarm" "audit_alarm" {
  alarm_name          = "${local.prefix}-audit-alarm"
  alarm_description   = "The audit log says that it has been tampered with, or has stopped: look for `audit alarm:` in the logs of drain-outbox, publish-anchor and watch-ledger, and run audit-verifier."
  namespace           = local.namespace
  metric_name         = "audit.alarms"
  statistic           = "Sum"
  period              = 60
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to
  ok_actions          = local.to
}

resource "aws_cloudwatch_metric_alarm" "error_lines" {
  alarm_name          = "${local.prefix}-error-lines"
  alarm_description   = "Functions wrote Error lines: callers were told of an internal error, or something failed behind their backs. The log has the cause beside the request id."
  namespace           = local.namespace
  metric_name         = "error.lines"
  statistic           = "Sum"
  period              = 300
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 5
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to
  ok_actions          = local.to
}

resource "aws_cloudwatch_metric_alarm" "dead_letters" {
  alarm_name          = "${local.prefix}-dead-letters"
  alarm_description   = "Calls that nobody waits for failed for good. The queue has them, each with its function, payload and error."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.dead_letters.name }
  statistic           = "Maximum"
  period              = 60
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to
  ok_actions          = local.to
}

# Occurrences of tenants' schedules that could not be handed over to Step Functions.
resource "aws_cloudwatch_metric_alarm" "schedule_dead_letters" {
  alarm_name          = "${local.prefix}-schedule-dead-letters"
  alarm_description   = "Occurrences of tenants' schedules could not be started for an hour. The queue has them, each with its error."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.schedule_dead_letters.name }
  statistic           = "Maximum"
  period              = 60
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to
  ok_actions          = local.to
}

# Runs of the platform's own state machines. One that fails has nearly always a turn that did; of many it is the machine or what it calls. How tenants' own
# end is theirs to see.
resource "aws_cloudwatch_metric_alarm" "executions" {
  for_each = local.machines

  alarm_name          = "${local.prefix}-executions-${each.key}"
  alarm_description   = "More than 10 % of the executions of ${each.key} failed or timed out for 15 minutes. The state machine's log says in which state."
  comparison_operator = "GreaterThanThreshold"
  threshold           = 10
  evaluation_periods  = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to
  ok_actions          = local.to

  metric_query {
    id          = "share"
    expression  = "IF(FILL(failed, 0) + FILL(late, 0) >= 3, 100 * (FILL(failed, 0) + FILL(late, 0)) / (FILL(failed, 0) + FILL(late, 0) + FILL(succeeded, 0)), 0)"
    label       = "% failed"
    return_data = true
  }
  dynamic "metric_query" {
    for_each = local.endings
    content {
      id = metric_query.key
      metric {
        namespace   = "AWS/States"
        metric_name = metric_query.value
        dimensions  = { StateMachineArn = aws_sfn_state_machine.platform[each.key].arn }
        period      = 300
        stat        = "Sum"
      }
    }
  }
}

locals {
  endings = { succeeded = "ExecutionsSucceeded", failed = "ExecutionsFailed", late = "ExecutionsTimedOut" }
}

# Each gateway's share of requests that failed by our fault. A single failure among few requests is what the Error lines tell of.
resource "aws_cloudwatch_metric_alarm" "gateway" {
  for_each = {
    http-api    = { namespace = "AWS/ApiGateway", errors = "5xx", requests = "Count", count = "Sum", dimensions = { ApiId = aws_apigatewayv2_api.platform.id } }
    graphql-api = { namespace = "AWS/AppSync", errors = "5XXError", requests = "Latency", count = "SampleCount", dimensions = { GraphQLAPIId = aws_appsync_graphql_api.platform.id } }
  }

  alarm_name          = "${local.prefix}-${each.key}-5xx"
  alarm_description   = "More than 1 % of the requests to the ${each.key} were answered with a 5xx for 15 minutes."
  comparison_operator = "GreaterThanThreshold"
  threshold           = 1
  evaluation_periods  = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to
  ok_actions          = local.to

  metric_query {
    id          = "share"
    expression  = "IF(errors >= 5, 100 * errors / requests, 0)"
    label       = "% failed"
    return_data = true
  }
  metric_query {
    id = "errors"
    metric {
      namespace   = each.value.namespace
      metric_name = each.value.errors
      dimensions  = each.value.dimensions
      period      = 300
      stat        = "Sum"
    }
  }
  metric_query {
    id = "requests"
    metric {
      namespace   = each.value.namespace
      metric_name = each.value.requests
      dimensions  = each.value.dimensions
      period      = 300
      stat        = each.value.count
    }
  }
}

# A turn that fails is an answer that somebody waits for in vain. Cancelled and interrupted ones are what people wanted.
resource "aws_cloudwatch_metric_alarm" "turns_failed" {
  alarm_name          = "${local.prefix}-turns-failed"
  alarm_description   = "More than 10 % of the turns failed for 15 minutes. The lines `turn ended` and `turn failed` say by what type of error."
  comparison_operator = "GreaterThanThreshold"
  threshold           = 10
  evaluation_periods  = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to
  ok_actions          = local.to

  metric_query {
    id          = "share"
    expression  = "IF(FILL(failed, 0) >= 3, 100 * FILL(failed, 0) / (FILL(failed, 0) + FILL(succeeded, 0)), 0)"
    label       = "% failed"
    return_data = true
  }
  dynamic "metric_query" {
    for_each = toset(["failed", "succeeded"])
    content {
      id = metric_query.key
      metric {
        namespace   = local.namespace
        metric_name = "turns"
        dimensions  = { status = metric_query.key }
        period      = 300
        stat        = "Sum"
      }
    }
  }
}

# Calls that the scheduler could not hand over to Lambda at all.
resource "aws_cloudwatch_metric_alarm" "scheduler" {
  alarm_name          = "${local.prefix}-scheduler"
  alarm_description   = "The scheduler gave up calling a function: see the dead letters."
  namespace           = "AWS/Scheduler"
  metric_name         = "InvocationDroppedCount"
  dimensions          = { ScheduleGroup = aws_scheduler_schedule_group.platform.name }
  statistic           = "Sum"
  period              = 300
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = local.to
  ok_actions          = local.to
}
