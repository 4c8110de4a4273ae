# Values that a variable must refuse: in each run every variable named has a wrong one, and every one of them must be refused.

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

run "refused_1" {
  command = plan

  variables {
    name                = "A"
    stage               = "Dev"
    region              = "eu"
    account_id          = "12345"
    tags                = { Stage = "x" }
    vpc_cidr            = "10.0.0.0/8"
    availability_zones  = ["eu-central-1a"]
    nat_gateways        = "two"
    egress_ports        = [0]
    interface_endpoints = ["appsync-api"]
    flow_log_days       = 2
    mfa                 = "on"
    password_min_length = 7
    user_pool_tier      = "LITE"
    threat_protection   = "OFF"
    sign_in_domain      = "Agents"
    callback_urls       = []
    logout_urls         = ["http://example.com"]
    domain_name         = "example"
    dns_zone_id         = "zone"
    email_domain        = "x@example.com"
    invitations_from    = "Agents <a@example.com>"
    mail_domain         = "@in.example.com"
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.tags, var.vpc_cidr, var.availability_zones, var.nat_gateways, var.egress_ports, var.interface_endpoints, var.flow_log_days, var.mfa, var.password_min_length, var.user_pool_tier, var.threat_protection, var.sign_in_domain, var.callback_urls, var.logout_urls, var.domain_name, var.dns_zone_id, var.email_domain, var.invitations_from, var.mail_domain,
  ]
}

run "refused_2" {
  command = plan

  variables {
    name                = "agent--platform"
    stage               = "dev-"
    region              = "eu-central"
    account_id          = "12345678901x"
    tags                = { "aws:x" = "y" }
    vpc_cidr            = "10.64.1.0/16"
    availability_zones  = ["eu-central-1a", "eu-central-1a"]
    nat_gateways        = ""
    egress_ports        = [443, 443]
    interface_endpoints = ["s3"]
    flow_log_days       = -1
    mfa                 = "SMS"
    password_min_length = 100
    user_pool_tier      = "FREE"
    sign_in_domain      = "my-cognito"
    callback_urls       = ["http://example.com/callback"]
    logout_urls         = ["ftp://example.com"]
    domain_name         = "Agents.example.com"
    dns_zone_id         = "/hostedzone/Z01"
    email_domain        = "example"
    invitations_from    = "example.com"
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.tags, var.vpc_cidr, var.availability_zones, var.nat_gateways, var.egress_ports, var.interface_endpoints, var.flow_log_days, var.mfa, var.password_min_length, var.user_pool_tier, var.sign_in_domain, var.callback_urls, var.logout_urls, var.domain_name, var.dns_zone_id, var.email_domain, var.invitations_from,
  ]
}

run "refused_3" {
  command = plan

  variables {
    name                = "my-aws"
    stage               = "astagewith20letters0"
    region              = "Frankfurt"
    account_id          = "1234-5678-9012"
    vpc_cidr            = "8.8.0.0/16"
    availability_zones  = ["a", "b", "c", "d", "e", "f", "g"]
    egress_ports        = [70000]
    interface_endpoints = ["kms", "kms"]
    password_min_length = 8.5
    sign_in_domain      = "a.b"
    callback_urls       = ["https://example.com/*"]
    domain_name         = "agents.example.com."
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.vpc_cidr, var.availability_zones, var.egress_ports, var.interface_endpoints, var.password_min_length, var.sign_in_domain, var.callback_urls, var.domain_name,
  ]
}

run "refused_4" {
  command = plan

  variables {
    name                = "averyveryverylongname"
    stage               = ""
    region              = "eu-central-1a"
    account_id          = ""
    vpc_cidr            = "ten"
    interface_endpoints = ["com.amazonaws/kms"]
    callback_urls       = ["http://localhost.example.com"]
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.vpc_cidr, var.interface_endpoints, var.callback_urls,
  ]
}

# Rules between variables, which a variable's own rule cannot hold.
run "zones_of_another_region" {
  command = plan

  variables {
    availability_zones = ["us-east-1a", "us-east-1b"]
  }

  expect_failures = [aws_vpc.this]
}

run "zone_without_a_domain" {
  command = plan

  variables {
    dns_zone_id = "Z0123456789ABCDEFGHIJ"
  }

  expect_failures = [aws_vpc.this]
}

run "invitations_from_elsewhere" {
  command = plan

  variables {
    email_domain     = "example.com"
    invitations_from = "agents@example.org"
  }

  expect_failures = [aws_vpc.this]
}

run "receiving_without_sending" {
  command = plan

  variables {
    mail_domain = "in.example.com"
  }

  expect_failures = [terraform_data.mail]
}

run "receiving_a_domains_own_mail" {
  command = plan

  variables {
    email_domain = "example.com"
    mail_domain  = "example.com"
  }

  expect_failures = [terraform_data.mail]
}

run "receiving_bounces" {
  command = plan

  variables {
    email_domain = "example.com"
    mail_domain  = "bounce.example.com"
  }

  expect_failures = [terraform_data.mail]
}
