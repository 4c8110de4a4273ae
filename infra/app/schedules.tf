# What runs on time, and what the identity pool calls.

resource "aws_scheduler_schedule_group" "platform" {
  name = local.prefix
}

resource "aws_scheduler_schedule" "function" {
  for_each = local.schedules

  name                         = each.key
  description                  = "${each.value.function}, ${each.value.expression}"
  group_name                   = aws_scheduler_schedule_group.platform.name
  schedule_expression          = each.value.expression
  schedule_expression_timezone = "UTC"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = module.function[each.value.function].arn
    role_arn = aws_iam_role.scheduler.arn
    input    = "{}"

    # The scheduler only has to hand the call over to Lambda, which repeats the function by itself; what is late by an hour, the next call makes good.
    retry_policy {
      maximum_retry_attempts       = 10
      maximum_event_age_in_seconds = 3600
    }

    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }

  depends_on = [aws_iam_role_policy.scheduler]
}

resource "aws_iam_role" "scheduler" {
  name               = "${local.prefix}-scheduler"
  description        = "EventBridge Scheduler, for functions that run on time"
  assume_role_policy = local.assumed_by["scheduler"]
}

resource "aws_iam_role_policy" "scheduler" {
  name = "invoke"
  role = aws_iam_role.scheduler.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([
      { Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = distinct([for schedule in local.schedules : local.rows[schedule.function].arn]) },
    ], local.give_up)
  })
}

# The pool names these functions itself; it is the foundation tier's, which knows their names: agentplatform-<stage>-<row>.
resource "aws_lambda_permission" "trigger" {
  for_each = local.hooks

  statement_id   = replace(each.key, ":", "-")
  action         = "lambda:InvokeFunction"
  function_name  = module.function[each.value].name
  principal      = "cognito-idp.amazonaws.com"
  source_arn     = var.foundation.user_pool.arn
  source_account = var.account_id

  lifecycle {
    precondition {
      condition     = startswith(each.key, "cognito:")
      error_message = "schema/routes.json: the trigger ${each.key} of ${each.value} is none of the identity pool's (cognito:…), and this tier knows no other."
    }
  }
}
