# Where people are told: the topic that every alarm and the budget write to.

resource "aws_sns_topic" "alarms" {
  name              = "${local.prefix}-alarms"
  kms_master_key_id = var.foundation.key_arns["logs"]
}

resource "aws_sns_topic_policy" "alarms" {
  arn = aws_sns_topic.alarms.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "AlarmsAndBudget"
      Effect    = "Allow"
      Principal = { Service = ["cloudwatch.amazonaws.com", "budgets.amazonaws.com"] }
      Action    = "sns:Publish"
      Resource  = aws_sns_topic.alarms.arn
      Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
    }]
  })
}

resource "aws_sns_topic_subscription" "alarms" {
  for_each = toset(var.alarm_emails)

  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = each.key
}

# Of the whole account: a budget of one tag's costs stays at zero until somebody has activated the tag for cost allocation, and says nothing of it.
resource "aws_budgets_budget" "monthly" {
  account_id   = var.account_id
  name         = local.prefix
  budget_type  = "COST"
  limit_amount = tostring(var.monthly_budget_usd)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"

  dynamic "notification" {
    for_each = { actual_80 = ["ACTUAL", 80], actual_100 = ["ACTUAL", 100], forecasted_100 = ["FORECASTED", 100] }
    content {
      notification_type         = notification.value[0]
      threshold                 = notification.value[1]
      threshold_type            = "PERCENTAGE"
      comparison_operator       = "GREATER_THAN"
      subscriber_sns_topic_arns = [aws_sns_topic.alarms.arn]
    }
  }

  depends_on = [aws_sns_topic_policy.alarms]
}
