# Each rule of a variable, by an input that breaks it. The rules of one object need a run each. What is refused beyond variables is in test/infra.

mock_provider "aws" {
  source = "../mocks"
}

run "zips" {
  module {
    source = "./tests/setup"
  }
}

run "settings" {
  command = plan
  variables {
    name                    = "Amazon"
    default_model_id        = "claude"
    embedding_model_id      = "amazon.titan-embed-text-v1"
    tags                    = { Stage = "prod" }
    stage                   = "Prod_1"
    first_tenant            = { slug = "Acme!", name = "Acme", owner_email = "ann" }
    region                  = "us east"
    account_id              = "1234-5678-9012"
    operator_emails         = ["ops@acme.test, ops2@acme.test"]
    model_ids               = ["*"]
    guardrail_ids           = ["*"]
    anchor_origin           = "our log"
    anchor_interval_minutes = 7
    anchor_retention_days   = 0.5
    anchor_witness          = { url = "http://witness.example.com", key = "w" }
    runtime_image_tag       = "latest"
    allowed_origins         = ["https://console.example.com/app"]
    api_rate_limit          = 0
    api_burst_limit         = 1.5
    log_retention_days      = 31
    log_level               = "ERROR"
    otlp_endpoint           = "collector:4318"
    alarm_emails            = ["somebody"]
    mail_from               = "Agents <agents@mail.acme.test>"
    mail_rule_set           = "our rules"
    push_applications       = { fcm = "arn:aws:sns:eu-central-1:123456789012:app/APNS/agents" }
    monthly_budget_usd      = 0
    cdn_price_class         = "PriceClass_50"
  }
  expect_failures = [
    var.name, var.tags, var.default_model_id, var.embedding_model_id, var.first_tenant, var.stage, var.region, var.account_id, var.operator_emails, var.model_ids, var.guardrail_ids, var.anchor_origin, var.anchor_interval_minutes, var.anchor_retention_days, var.anchor_witness,
    var.runtime_image_tag, var.allowed_origins, var.api_rate_limit, var.api_burst_limit, var.log_retention_days, var.log_level, var.otlp_endpoint, var.alarm_emails, var.mail_from, var.mail_rule_set, var.push_applications, var.monthly_budget_usd,
    var.cdn_price_class,
  ]
}

run "one_subnet_and_no_secret" {
  command = plan
  variables {
    foundation = merge(var.foundation, { private_subnet_ids = ["subnet-0a"] })
    data       = merge(var.data, { secrets = {} })
  }
  expect_failures = [
    var.foundation,
    var.data,
  ]
}

run "no_key_and_no_bucket" {
  command = plan
  variables {
    foundation = merge(var.foundation, { key_arns = {} })
    data       = merge(var.data, { buckets = {} })
  }
  expect_failures = [
    var.foundation,
    var.data,
  ]
}

run "a_folder_with_a_slash" {
  command = plan
  variables {
    dist = "dist/"
  }
  expect_failures = [
    var.dist,
  ]
}

run "mail_from_another_domain" {
  command = plan
  variables {
    mail_from = "agents@acme.test"
  }
  expect_failures = [
    terraform_data.ready,
  ]
}

run "mail_without_a_domain" {
  command = plan
  variables {
    foundation = merge(var.foundation, { email_identity_arn = "" })
  }
  expect_failures = [
    terraform_data.ready,
  ]
}

run "a_rule_set_without_mail" {
  command = plan
  variables {
    foundation    = merge(var.foundation, { mail_domain = "" })
    mail_rule_set = "default-rule-set"
  }
  expect_failures = [
    terraform_data.ready,
  ]
}

run "push_of_another_account" {
  command = plan
  variables {
    push_applications = { fcm = "arn:aws:sns:eu-central-1:210987654321:app/GCM/agents" }
  }
  expect_failures = [
    terraform_data.ready,
  ]
}
