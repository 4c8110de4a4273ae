# What the platform itself makes for tenants, and what that may do: schedules in a group of their own, each of which starts the state machine auto-thread,
# and the state machines of their routines, whose tasks are the functions of the rows with `state routine`.
#
# ARNs are put together from names, for who is granted something here is made before.

locals {
  schedules_group   = "${local.prefix}-tenants"
  schedules_role    = "${local.prefix}-tenants-schedules"
  schedules_letters = "${local.prefix}-schedule-dead-letters"
  schedules_target  = "${local.arn}:states:${local.here}:stateMachine:${local.prefix}-auto-thread"

  routines          = "routine" # how the names of tenants' machines begin, behind the prefix, and what rows call them
  routines_role     = "${local.prefix}-routines"
  routines_log      = "/aws/vendedlogs/states/${local.prefix}-routines"
  routines_machines = "${local.arn}:states:${local.here}:stateMachine:${local.prefix}-${local.routines}-" # and what follows it

  role_arn  = { for name in [local.schedules_role, local.routines_role] : name => "${local.arn}:iam::${var.account_id}:role/${name}" }
  queue_arn = "${local.arn}:sqs:${local.here}:${local.schedules_letters}"
}

# ---- Schedules. A group that goes takes its schedules along.

resource "aws_scheduler_schedule_group" "tenants" {
  name = local.schedules_group
}

resource "aws_iam_role" "schedules" {
  name        = local.schedules_role
  description = "EventBridge Scheduler, for tenants' schedules"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = var.account_id, "aws:SourceArn" = "${local.arn}:scheduler:${local.here}:schedule-group/${local.schedules_group}" } }
    }]
  })
}

resource "aws_iam_role_policy" "schedules" {
  name = "start"
  role = aws_iam_role.schedules.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Effect = "Allow", Action = ["states:StartExecution"], Resource = [local.schedules_target] },
      { Effect = "Allow", Action = ["sqs:SendMessage"], Resource = [local.queue_arn] },
    ]
  })
}

# An occurrence that could not be delivered for an hour. A queue of its own: no function is to be called with what is in it.
resource "aws_sqs_queue" "schedule_dead_letters" {
  name                      = local.schedules_letters
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "schedule_dead_letters" {
  queue_url = aws_sqs_queue.schedule_dead_letters.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TLS"
      Effect    = "Deny"
      Principal = "*"
      Action    = "sqs:*"
      Resource  = aws_sqs_queue.schedule_dead_letters.arn
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}

# ---- Routines

resource "aws_iam_role" "routines" {
  name        = local.routines_role
  description = "The state machines of tenants' routines, for their tasks"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "states.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = var.account_id }, ArnLike = { "aws:SourceArn" = "${local.routines_machines}*" } }
    }]
  })
}

# A definition is a tenant's: whatever it says, its tasks reach the one function that holds every step against the tenant and the version.
resource "aws_iam_role_policy" "routines" {
  name = "tasks"
  role = aws_iam_role.routines.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [for arns in [[for name, machine in local.tasks : local.rows[name].arn if machine == local.routines]] : { Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = arns } if length(arns) > 0],
      local.observed,
    )
  })
}

resource "aws_cloudwatch_log_group" "routines" {
  name              = local.routines_log
  retention_in_days = var.log_retention_days
  kms_key_id        = var.foundation.key_arns["logs"]
}

# ---- Events: how a run of a tenant's state machine has ended. Its input and output stay behind, for what cannot be delivered is kept for days.

resource "aws_cloudwatch_event_rule" "states" {
  for_each = local.told

  name        = "${local.prefix}-${each.key}"
  description = "Runs of tenants' state machines have ended, for ${each.key}"
  event_pattern = jsonencode({
    source      = ["aws.states"]
    detail-type = ["Step Functions Execution Status Change"]
    detail = {
      stateMachineArn = [{ prefix = local.routines_machines }]
      status          = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
    }
  })
}

resource "aws_cloudwatch_event_target" "states" {
  for_each = local.told

  rule = aws_cloudwatch_event_rule.states[each.key].name
  arn  = module.function[each.key].arn

  input_transformer {
    input_paths    = { type = "$.detail-type", run = "$.detail.executionArn", machine = "$.detail.stateMachineArn", name = "$.detail.name", status = "$.detail.status" }
    input_template = "{\"source\": \"aws.states\", \"detail-type\": <type>, \"detail\": {\"executionArn\": <run>, \"stateMachineArn\": <machine>, \"name\": <name>, \"status\": <status>}}"
  }

  # A sweep of the same function finds what was lost: an hour is long enough.
  retry_policy {
    maximum_retry_attempts       = 10
    maximum_event_age_in_seconds = 3600
  }

  dead_letter_config {
    arn = aws_sqs_queue.dead_letters.arn
  }

  depends_on = [aws_sqs_queue_policy.dead_letters]
}

resource "aws_lambda_permission" "states" {
  for_each = local.told

  statement_id  = "states"
  action        = "lambda:InvokeFunction"
  function_name = module.function[each.key].name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.states[each.key].arn
}
