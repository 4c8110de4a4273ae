# A function for each row of schema/routes.json.

resource "aws_cloudwatch_log_group" "function" {
  for_each = local.rows

  name              = "/aws/lambda/${local.prefix}-${each.key}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.foundation.key_arns["logs"]
}

# Those that the deployment calls before it changes anything else: migrations. See deploy.tf.
module "first" {
  source   = "../modules/function"
  for_each = { for name, row in local.rows : name => row if contains(row.on, "deploy before") }

  name              = "${local.prefix}-${each.key}"
  row               = merge(each.value, { reserved = var.reserve_concurrency ? each.value.reserved : -1 })
  bucket            = var.data.buckets.functions.name
  role_arn          = aws_iam_role.function[local.set_of[each.key]].arn
  settings          = merge(concat([local.telemetry], [for need in local.needs[each.key] : try(local.grants[need].env, {})])...) # of local.env, which waits for the runtime
  log_group         = aws_cloudwatch_log_group.function[each.key].name
  log_level         = var.log_level
  subnet_ids        = var.foundation.private_subnet_ids
  security_group_id = var.foundation.functions_security_group_id

  # Lambda looks whether the role may make network interfaces when it makes the function.
  depends_on = [terraform_data.ready, aws_iam_role_policy.function]
}

module "function" {
  source   = "../modules/function"
  for_each = { for name, row in local.rows : name => row if !contains(row.on, "deploy before") }

  name              = "${local.prefix}-${each.key}"
  row               = merge(each.value, { reserved = var.reserve_concurrency ? each.value.reserved : -1 })
  bucket            = var.data.buckets.functions.name
  role_arn          = aws_iam_role.function[local.set_of[each.key]].arn
  settings          = local.env[each.key]
  tags              = contains(local.resolving, each.key) ? local.field_tag : {}
  log_group         = aws_cloudwatch_log_group.function[each.key].name
  log_level         = var.log_level
  subnet_ids        = var.foundation.private_subnet_ids
  security_group_id = var.foundation.functions_security_group_id

  # New code serves a database that it knows.
  depends_on = [terraform_data.ready, aws_iam_role_policy.function, aws_lambda_invocation.before]
}

# Invoked by another function or a schedule, nobody waits for the answer: Lambda tries again, then keeps what failed. Six hours, because a function
# with a concurrency of one lets others wait, and waiting is no failure.
resource "aws_lambda_function_event_invoke_config" "async" {
  for_each = { for name, row in local.rows : name => row if row.async }

  function_name                = module.function[each.key].name
  maximum_retry_attempts       = 2
  maximum_event_age_in_seconds = 21600

  destination_config {
    on_failure {
      destination = aws_sqs_queue.dead_letters.arn # rather than a dead-letter target: it also says why
    }
  }

  depends_on = [aws_iam_role_policy.function]
}

# A function that hands its work on to a next run of itself does so for as long as there is work: Lambda's loop detection would stop it at the 16th.
resource "aws_lambda_function_recursion_config" "itself" {
  for_each = { for name, row in local.rows : name => row if contains(row.needs, "invoke:${name}") }

  function_name  = module.function[each.key].name
  recursive_loop = "Allow"
}

resource "aws_sqs_queue" "dead_letters" {
  name                      = local.dead_letters
  message_retention_seconds = 1209600 # the longest there is: somebody must find the time to look
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([{
      Sid       = "TLS"
      Effect    = "Deny"
      Principal = "*"
      Action    = "sqs:*"
      Resource  = aws_sqs_queue.dead_letters.arn
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
      }], [for rule in aws_cloudwatch_event_rule.states : {
      Effect    = "Allow"
      Principal = { Service = "events.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.dead_letters.arn
      Condition = { ArnEquals = { "aws:SourceArn" = rule.arn } }
    }])
  })
}
