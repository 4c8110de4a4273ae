# Values that a variable must refuse: in each run every variable named has a wrong one, and every one of them must be refused.

mock_provider "aws" {
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
    name       = "A"
    stage      = "Dev"
    region     = "eu"
    account_id = "12345"
    tags       = { Stage = "x" }
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.tags,
  ]
}

run "refused_2" {
  command = plan

  variables {
    name       = "agent--platform"
    stage      = "dev-"
    region     = "eu-central"
    account_id = "12345678901x"
    tags       = { "aws:x" = "y" }
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.tags,
  ]
}

run "refused_3" {
  command = plan

  variables {
    name       = "my-aws"
    stage      = "astagewith20letters0"
    region     = "Frankfurt"
    account_id = "1234-5678-9012"
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id,
  ]
}

run "refused_4" {
  command = plan

  variables {
    name       = "averyveryverylongname"
    stage      = ""
    region     = "eu-central-1a"
    account_id = ""
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id,
  ]
}
