# The whole tier, applied to a provider that answers by itself: with everything that is optional, and with nothing of it.

mock_provider "aws" {
  source = "../mocks"
}

mock_provider "aws" {
  alias  = "cdn"
  source = "../mocks"
}

variables {
  stage      = "dev"
  region     = "eu-central-1"
  account_id = "123456789012"
}

run "defaults" {
  assert {
    condition     = output.availability_zones == tolist(["eu-central-1a", "eu-central-1b"]) && length(output.private_subnet_ids) == 2 && length(output.database_subnet_ids) == 2
    error_message = "The network is not in two zones."
  }
  assert {
    condition     = length(aws_nat_gateway.this) == 1 && length(aws_route.nat) == 2
    error_message = "There is one NAT gateway, and each zone's functions go through it."
  }
  assert {
    condition     = output.function_prefix == "agentplatform-dev-" && output.foundation.prefix == "agentplatform-dev"
    error_message = "Names are <name>-<stage>-…."
  }
  assert {
    condition     = output.domain_name == "" && output.foundation.mail_domain == "" && output.certificate_arn == "" && output.email_identity_arn == "" && length(output.name_servers) == 0 && length(output.email_records) == 0
    error_message = "Without a domain there are no names and no mail, and outputs say so by being empty."
  }
  assert {
    condition     = aws_cognito_user_pool.this.lambda_config[0].pre_token_generation_config[0].lambda_version == "V2_0"
    error_message = "Without version 2 access tokens have no tenant."
  }
  assert {
    condition     = output.user_pool_issuer == "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Mock12345"
    error_message = "The issuer is not the pool's."
  }
  assert {
    condition     = alltrue([for name, value in output.foundation : value != null || name == "dns"])
    error_message = "The tiers above would read a null."
  }
}

run "everything" {
  variables {
    availability_zones  = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
    nat_gateways        = "per-zone"
    egress_ports        = [443, 8443]
    mfa                 = "ON"
    user_pool_tier      = "PLUS"
    threat_protection   = "ENFORCED"
    sign_in_domain      = "acme-agents"
    domain_name         = "agents.example.com"
    dns_delegated       = true
    email_domain        = "mail.agents.example.com"
    mail_domain         = "in.mail.agents.example.com"
    invitations_from    = "hello@mail.agents.example.com"
    deletion_protection = false
    tags                = { Team = "platform" }
  }

  assert {
    condition     = length(aws_nat_gateway.this) == 3 && length(output.nat_addresses) == 3 && length(aws_vpc_security_group_egress_rule.internet) == 4
    error_message = "Each zone has its way out, and each caller each port."
  }
  assert {
    condition     = length(aws_route53_record.mail) == 8 && length(output.name_servers) == 2
    error_message = "Mail has eight records, in the zone that is made."
  }
  assert {
    condition     = contains(output.email_records, { name = "in.mail.agents.example.com", type = "MX", value = "10 inbound-smtp.eu-central-1.amazonaws.com" }) && output.foundation.mail_domain == "in.mail.agents.example.com"
    error_message = "Mail does not come to SES, or the app tier does not know whose."
  }
  assert {
    condition     = output.certificate_arn != "" && output.cdn_certificate_arn != "" && output.dns_zone_id == "ZMOCK"
    error_message = "A delegated domain has certificates."
  }
  assert {
    condition     = aws_cognito_user_pool.this.user_pool_add_ons[0].advanced_security_mode == "ENFORCED" && aws_cognito_user_pool.this.email_configuration[0].email_sending_account == "DEVELOPER"
    error_message = "The pool does not protect or does not write as asked."
  }
  assert {
    condition     = output.sign_in_url == "https://acme-agents.auth.eu-central-1.amazoncognito.com"
    error_message = "The sign-in pages are elsewhere."
  }
}

run "zone_not_delegated_yet" {
  command = plan

  variables {
    domain_name = "agents.example.com"
  }

  assert {
    condition     = length(aws_route53_zone.this) == 1 && length(aws_acm_certificate.regional) == 0
    error_message = "Certificates would wait for a zone that nobody finds."
  }
}

run "zone_that_is_there" {
  command = plan

  variables {
    domain_name  = "agents.example.com"
    dns_zone_id  = "Z0123456789ABCDEFGHIJ"
    email_domain = "example.com"
  }

  assert {
    condition     = length(aws_route53_zone.this) == 0 && length(aws_acm_certificate.regional) == 1 && length(aws_route53_record.mail) == 0
    error_message = "The zone is used as it is; example.com's mail records are not in it."
  }
}

run "closed" {
  command = plan

  variables {
    nat_gateways     = "none"
    mfa              = "OFF"
    flow_log_days    = 0
    sign_in_triggers = false
  }

  assert {
    condition     = length(aws_nat_gateway.this) + length(aws_eip.nat) + length(aws_subnet.public) + length(aws_internet_gateway.this) + length(aws_vpc_security_group_egress_rule.internet) == 0
    error_message = "Without NAT nothing of the network touches the internet."
  }
  assert {
    condition     = length(aws_flow_log.refused) + length(aws_iam_role.flow) == 0 && length(aws_cognito_user_pool.this.lambda_config) == 0
    error_message = "What was switched off is there."
  }
}
