# Mail that comes in: SES puts it into its bucket and then calls who takes it. Only where the foundation has a mail_domain.
#
# SES has one active rule set in an account and region. Without mail_rule_set this makes one and has it active, in place of any other; with it, the rule is
# added to a set that somebody else keeps.

locals {
  receives = var.foundation.mail_domain != ""

  rule_set = !local.receives ? "" : var.mail_rule_set != null ? var.mail_rule_set : aws_ses_receipt_rule_set.mail[0].rule_set_name
  # By name, as the policies of the bucket and of its key have it.
  rule_arn = "${local.arn}:ses:${local.here}:receipt-rule-set/${coalesce(var.mail_rule_set, local.prefix)}:receipt-rule/${local.prefix}"
}

resource "aws_ses_receipt_rule_set" "mail" {
  count         = local.receives && var.mail_rule_set == null ? 1 : 0
  rule_set_name = local.prefix
}

resource "aws_ses_active_receipt_rule_set" "mail" {
  count         = length(aws_ses_receipt_rule_set.mail)
  rule_set_name = aws_ses_receipt_rule_set.mail[0].rule_set_name
}

resource "aws_ses_receipt_rule" "mail" {
  count = local.receives ? 1 : 0

  name          = local.prefix
  rule_set_name = local.rule_set
  recipients    = [var.foundation.mail_domain] # all addresses of it
  enabled       = true
  scan_enabled  = true # without it, the verdicts on spam and viruses would be whatever the sender wrote
  tls_policy    = "Require"

  # In this order: who is called finds the mail. Its key is not SES's to encrypt with: that would be in the client, and the bucket encrypts by itself.
  s3_action {
    position          = 1
    bucket_name       = var.data.buckets.mail.name
    object_key_prefix = "in/"
  }

  dynamic "lambda_action" {
    for_each = { for i, name in sort(local.taking) : name => i }

    content {
      position        = lambda_action.value + 2
      function_arn    = module.function[lambda_action.key].arn
      invocation_type = "Event"
    }
  }

  # SES tries both when the rule is made.
  depends_on = [aws_lambda_permission.mail]
}

resource "aws_lambda_permission" "mail" {
  for_each = local.receives ? local.taking : []

  statement_id   = "mail"
  action         = "lambda:InvokeFunction"
  function_name  = module.function[each.key].name
  principal      = "ses.amazonaws.com"
  source_account = var.account_id
  source_arn     = local.rule_arn
}
