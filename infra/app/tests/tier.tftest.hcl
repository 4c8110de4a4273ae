# The whole tier, with a provider that answers by itself, and already while planning: what is known only afterwards fits together too.

mock_provider "aws" {
  source          = "../mocks"
  override_during = plan
}

run "zips" {
  module {
    source = "./tests/setup"
  }
}

run "as_it_comes" {
  command = plan

  assert {
    condition     = length(module.function) + length(module.first) == length(jsondecode(file("../../schema/routes.json")).functions)
    error_message = "each row of schema/routes.json has one function"
  }
  assert {
    condition = alltrue([for name, field in aws_appsync_resolver.field :
    field.data_source == aws_appsync_datasource.function[local.fields[name]].name && strcontains(field.code, local.batched)])
    error_message = "a field's resolver has its function behind it and knows which fields are batched"
  }
  assert {
    condition     = output.appsync_url == "https://mocked.appsync-api.eu-central-1.amazonaws.com" && output.realtime_url == "wss://mocked.appsync-realtime-api.eu-central-1.amazonaws.com"
    error_message = "clients add /graphql themselves, to what the outputs say"
  }
  assert {
    condition     = output.api_url == "https://mockedhttp.execute-api.eu-central-1.amazonaws.com" && output.web_app_url == "https://d222222mocked.cloudfront.net"
    error_message = "without a domain, the outputs name what AWS gave"
  }
  assert {
    condition     = module.function["send-message"].settings["APPSYNC_URL"] == output.appsync_url
    error_message = "what publishes knows the API"
  }
  assert {
    condition     = strcontains(aws_iam_role_policy.function[local.set_of["send-message"]].policy, "arn:aws:appsync:eu-central-1:123456789012:apis/mockedapi/types/Mutation/fields/publishThreadEvent")
    error_message = "and may publish"
  }
  assert {
    condition     = !strcontains(join("", [for name, set in local.set_of : aws_iam_role_policy.function[set].policy if !contains(local.needs[name], "publish")]), "appsync:GraphQL")
    error_message = "nobody else may"
  }
  assert {
    condition     = length(aws_cloudformation_stack.memory) == 0 && length(aws_cloudformation_stack.runtime) == 0 && length(aws_route53_record.platform) == 0
    error_message = "without agent_runtime there is none, without a domain no record"
  }
  assert {
    condition     = aws_cloudformation_stack.interpreter[0].parameters["Name"] == "agentplatform_dev_sandbox" && output.code_interpreter_id == "agentplatform_dev_sandbox-MOCKED0001"
    error_message = "code of models has an interpreter"
  }
  assert {
    condition     = jsondecode(aws_cloudformation_stack.interpreter[0].template_body).Resources.Interpreter.Properties == { Name = { Ref = "Name" }, NetworkConfiguration = { NetworkMode = "SANDBOX" } }
    error_message = "which has no network and no role"
  }
  assert {
    condition = alltrue([for name, f in module.function : f.settings["CODE_INTERPRETER_ID"] == output.code_interpreter_id && strcontains(aws_iam_role_policy.function[local.set_of[name]].policy,
    "arn:aws:bedrock-agentcore:eu-central-1:123456789012:code-interpreter-custom/agentplatform_dev_sandbox-*") if contains(local.needs[name], "sandbox")])
    error_message = "who runs code knows it, and may use it and no other"
  }
  assert {
    condition     = !strcontains(join("", [for name, set in local.set_of : aws_iam_role_policy.function[set].policy if !contains(local.needs[name], "sandbox")]), "CodeInterpreter")
    error_message = "nobody else may"
  }
  assert {
    condition = [for statement in jsondecode(aws_iam_role_policy.function[local.set_of["send-mail"]].policy).Statement : statement if contains(statement.Action, "ses:SendEmail")] == [{
      Effect    = "Allow"
      Action    = ["ses:SendEmail", "ses:SendRawEmail"]
      Resource  = ["arn:aws:ses:eu-central-1:123456789012:identity/mail.acme.test"]
      Condition = { StringEquals = { "ses:FromAddress" = "agents@mail.acme.test" } }
    }]
    error_message = "one function may send mail, from the one address"
  }
  assert {
    condition     = !strcontains(join("", [for name, set in local.set_of : aws_iam_role_policy.function[set].policy if !contains(local.needs[name], "mail")]), "ses:Send") && module.function["dispatch-turn"].settings["MAIL_FROM"] == "agents@mail.acme.test"
    error_message = "nobody else may, also not who offers it to agents"
  }
  assert {
    condition     = aws_sns_topic_subscription.alarms["oncall@acme.test"].topic_arn == aws_sns_topic.alarms.arn
    error_message = "alarms reach who asked for them"
  }
  assert {
    condition     = output.knowledge_base_id == "MOCKEDKB01" && output.knowledge_data_source_id == "MOCKEDDS01" && module.first["migrate"].settings["DATABASE_KNOWLEDGE_SECRET_ID"] == var.data.knowledge.secret.arn
    error_message = "with Aurora there is a managed knowledge base, and migrations set its password"
  }
}

# A domain that SES has, and no address of agents.
run "without_mail" {
  command = plan

  variables {
    mail_from = ""
  }

  assert {
    condition     = !strcontains(join("", [for policy in aws_iam_role_policy.function : policy.policy]), "ses:Send") && module.function["send-mail"].settings["MAIL_FROM"] == "" && module.function["dispatch-turn"].settings["MAIL_FROM"] == ""
    error_message = "nobody may send mail, and agents are not offered to"
  }
}

# No domain whose mail is received, and nobody's devices.
run "without_mail_and_devices" {
  command = plan

  variables {
    foundation        = merge(var.foundation, { mail_domain = "" })
    push_applications = {}
  }

  assert {
    condition     = length(aws_ses_receipt_rule.mail) + length(aws_ses_receipt_rule_set.mail) + length(aws_ses_active_receipt_rule_set.mail) + length(aws_lambda_permission.mail) == 0
    error_message = "SES does as before"
  }
  assert {
    condition     = !strcontains(join("", [for policy in aws_iam_role_policy.function : policy.policy]), "sns:") && alltrue([for name, f in module.function : f.settings["PUSH_APPLICATIONS"] == "" if length(setintersection(local.needs[name], ["push:send", "push:devices"])) > 0])
    error_message = "nobody may push, and who would knows it"
  }
}

# A rule set that somebody else keeps.
run "with_a_rule_set" {
  command = plan

  variables {
    mail_rule_set = "default-rule-set"
  }

  assert {
    condition     = aws_ses_receipt_rule.mail[0].rule_set_name == "default-rule-set" && length(aws_ses_receipt_rule_set.mail) + length(aws_ses_active_receipt_rule_set.mail) == 0
    error_message = "a rule more, and the account's active set stays"
  }
  assert {
    condition     = alltrue([for permission in aws_lambda_permission.mail : permission.source_arn == "arn:aws:ses:eu-central-1:123456789012:receipt-rule-set/default-rule-set:receipt-rule/agentplatform-dev"])
    error_message = "that rule, and no other, calls"
  }
}

# Where Bedrock cannot reach the database, or nobody wants it to.
run "with_rds" {
  command = plan

  variables {
    data = merge(var.data, { knowledge = null })
  }

  assert {
    condition     = output.knowledge_base_id == null && output.knowledge_data_source_id == null && length(aws_iam_role.knowledge) == 0 && !contains(keys(module.first["migrate"].settings), "DATABASE_KNOWLEDGE_SECRET_ID")
    error_message = "there is no managed knowledge base, and nothing of one"
  }
}

run "without_a_knowledge_base" {
  command = plan

  variables {
    knowledge_base = false
  }

  assert {
    condition     = output.knowledge_base_id == null && length(aws_iam_role.knowledge) == 0 && !strcontains(aws_iam_role_policy.function[local.set_of["migrate"]].policy, "database/knowledge")
    error_message = "there is no managed knowledge base, and nothing of one"
  }
}

# From an AWS whose stacks make no secrets.
run "without_the_knowledge_bases_secret" {
  command = plan

  variables {
    data = merge(var.data, { knowledge = merge(var.data.knowledge, { secret = merge(var.data.knowledge.secret, { arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:agentplatform-dev/database/knowledge-??????" }) }) })
  }

  expect_failures = [aws_bedrockagent_knowledge_base.documents]
}

# A name of one's own, a witness, and a runtime in a container.
run "with_everything" {
  command = plan

  variables {
    foundation = merge(var.foundation, { dns = {
      name                = "agents.acme.test"
      zone_id             = "Z0123456789"
      certificate_arn     = "arn:aws:acm:eu-central-1:123456789012:certificate/66666666-6666-4666-8666-666666666666"
      cdn_certificate_arn = "arn:aws:acm:us-east-1:123456789012:certificate/77777777-7777-4777-8777-777777777777"
    } })
    agent_runtime     = true
    memory_service    = false
    code_interpreter  = false
    first_tenant      = { slug = "acme", name = "Acme", owner_email = "ann@acme.test" }
    runtime_image_tag = "1.4.0"
    anchor_witness    = { url = "https://witness.example.com", key = "witness.example.com+0123abcd+AbCdEf" }
  }

  assert {
    condition     = aws_cloudformation_stack.runtime[0].parameters["Image"] == "123456789012.dkr.ecr.eu-central-1.amazonaws.com/agentplatform-dev/agent-runtime:1.4.0"
    error_message = "the runtime is the pinned image"
  }
  assert {
    condition = jsonencode(merge(jsondecode(aws_cloudformation_stack.runtime[0].template_body).Resources.Runtime.Properties.EnvironmentVariables,
    { AGENT_RUNTIMES = "default=arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/mocked" })) == jsonencode(merge(module.function["dispatch-turn"].settings, { AWS_REGION = "eu-central-1" }))
    error_message = "the runtime has the settings of dispatch-turn, which knows the runtime besides"
  }
  assert {
    condition     = strcontains(aws_iam_role_policy.runtime[0].policy, "arn:aws:ecr:eu-central-1:123456789012:repository/agentplatform-dev/agent-runtime")
    error_message = "the runtime may fetch its image, and no other"
  }
  assert {
    condition     = output.runtime_arn == "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/mocked"
    error_message = "the runtime's arn is an output"
  }
  assert {
    condition     = output.api_url == "https://api.agents.acme.test" && output.web_app_url == "https://agents.acme.test" && output.realtime_url == "wss://graphql.agents.acme.test"
    error_message = "with a domain, clients are told its names"
  }
  assert {
    condition     = aws_apigatewayv2_api.platform.disable_execute_api_endpoint && toset(keys(aws_route53_record.platform)) == toset(["api-A", "graphql-A", "console-A", "console-AAAA"])
    error_message = "and they lead somewhere"
  }
  assert {
    condition     = module.function["publish-anchor"].settings["ANCHOR_WITNESS_URL"] == "https://witness.example.com" && contains(keys(aws_cloudwatch_metric_alarm.figure), "witness-failed")
    error_message = "the witness is asked, and missed when it fails"
  }
  assert {
    condition     = length(aws_cloudformation_stack.memory) == 1 && output.memory_id == "agentplatform_dev_memory-MOCKED0001"
    error_message = "without the memory service, memory is managed"
  }
  assert {
    condition = length(aws_cloudformation_stack.interpreter) == 0 && output.code_interpreter_id == null && !strcontains(join("", [for policy in aws_iam_role_policy.function : policy.policy]), "CodeInterpreter") && alltrue([
      for name, f in module.function : f.settings["CODE_INTERPRETER_ID"] == "" if contains(local.needs[name], "sandbox")
    ])
    error_message = "without the code interpreter, nobody may use one"
  }
}
