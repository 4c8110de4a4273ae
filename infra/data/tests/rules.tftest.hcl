# Values that a variable must refuse: in each run every variable named has a wrong one, and every one of them must be refused.

mock_provider "aws" {
  source = "../mocks"
}

variables {
  stage       = "dev"
  region      = "eu-central-1"
  account_id  = "123456789012"
  db_password = "correct-horse-battery"
  foundation = {
    prefix                     = "agentplatform-dev"
    region                     = "eu-central-1"
    account_id                 = "123456789012"
    database_subnet_ids        = ["subnet-a", "subnet-b"]
    database_security_group_id = "sg-database"
    anchor_signing_key_arn     = "arn:aws:kms:eu-central-1:123456789012:key/anchor"
    key_arns                   = { for category in ["database", "platform", "emission", "oauth", "tools", "integrations", "mail", "objects", "audit", "assets", "logs"] : category => "arn:aws:kms:eu-central-1:123456789012:key/${category}" }
  }
}

run "refused_1" {
  command = plan

  variables {
    name                         = "A"
    stage                        = "Dev"
    region                       = "eu"
    account_id                   = "12345"
    tags                         = { Stage = "x" }
    database_engine              = "aurora"
    database_version             = "14.9"
    db_password                  = "short"
    database_name                = "postgres"
    aurora_min_capacity          = 0.3
    aurora_max_capacity          = 0.5
    aurora_instances             = 0
    rds_instance_class           = "t4g.medium"
    rds_storage_gb               = 10
    rds_max_storage_gb           = 20
    backup_days                  = 6
    final_snapshot               = "Final"
    log_days                     = 2
    audit_cold_days              = 0
    audit_default_retention_days = -1
    exports_days                 = 0
    mail_days                    = 14
    old_version_days             = 6
    verifier_principals          = ["auditor"]
    secret_recovery_days         = 5
    foundation = {
      prefix                     = "agentplatform-dev"
      region                     = "eu-central-1"
      account_id                 = "123456789012"
      database_subnet_ids        = ["subnet-a"]
      database_security_group_id = "sg-database"
      anchor_signing_key_arn     = "arn:aws:kms:eu-central-1:123456789012:key/anchor"
      key_arns                   = { for category in ["database", "platform", "emission", "oauth", "tools", "integrations", "mail", "objects", "audit", "assets", "logs"] : category => "arn:aws:kms:eu-central-1:123456789012:key/${category}" }
    }
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.tags, var.database_engine, var.database_version, var.db_password, var.database_name, var.aurora_min_capacity, var.aurora_max_capacity, var.aurora_instances, var.rds_instance_class, var.rds_storage_gb, var.rds_max_storage_gb, var.backup_days, var.final_snapshot, var.log_days, var.audit_cold_days, var.audit_default_retention_days, var.exports_days, var.mail_days, var.old_version_days, var.verifier_principals, var.secret_recovery_days, var.foundation,
  ]
}

run "refused_2" {
  command = plan

  variables {
    name                         = "agent--platform"
    stage                        = "dev-"
    region                       = "eu-central"
    account_id                   = "12345678901x"
    tags                         = { "aws:x" = "y" }
    database_engine              = "mysql"
    database_version             = "16"
    db_password                  = "with spaces in the middle"
    database_name                = "Agents"
    aurora_min_capacity          = -1
    aurora_max_capacity          = 512
    aurora_instances             = 16
    rds_instance_class           = "db.t4g"
    rds_storage_gb               = 20.5
    rds_max_storage_gb           = 100000
    backup_days                  = 36
    final_snapshot               = "a--b"
    log_days                     = 0
    audit_default_retention_days = 36501
    exports_days                 = 366
    mail_days                    = 366
    verifier_principals          = ["*"]
    secret_recovery_days         = 31
    foundation = {
      prefix                     = "agentplatform-dev"
      region                     = "eu-central-1"
      account_id                 = "123456789012"
      database_subnet_ids        = ["subnet-a", "subnet-b"]
      database_security_group_id = "sg-database"
      anchor_signing_key_arn     = "arn:aws:kms:eu-central-1:123456789012:key/anchor"
      key_arns                   = { for category in ["database"] : category => "arn:aws:kms:eu-central-1:123456789012:key/${category}" }
    }
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.tags, var.database_engine, var.database_version, var.db_password, var.database_name, var.aurora_min_capacity, var.aurora_max_capacity, var.aurora_instances, var.rds_instance_class, var.rds_storage_gb, var.rds_max_storage_gb, var.backup_days, var.final_snapshot, var.log_days, var.audit_default_retention_days, var.exports_days, var.mail_days, var.verifier_principals, var.secret_recovery_days, var.foundation,
  ]
}

run "refused_3" {
  command = plan

  variables {
    name                = "my-aws"
    stage               = "astagewith20letters0"
    region              = "Frankfurt"
    account_id          = "1234-5678-9012"
    database_engine     = ""
    database_version    = "15.3"
    db_password         = "slash/slash/slash/slash"
    database_name       = "agent-platform"
    aurora_min_capacity = 257
    aurora_instances    = 1.5
    backup_days         = 0
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.database_engine, var.database_version, var.db_password, var.database_name, var.aurora_min_capacity, var.aurora_instances, var.backup_days,
  ]
}

run "refused_4" {
  command = plan

  variables {
    name        = "averyveryverylongname"
    stage       = ""
    region      = "eu-central-1a"
    account_id  = ""
    db_password = "quote'quote'quote'quote"
  }

  expect_failures = [
    var.name, var.stage, var.region, var.account_id, var.db_password,
  ]
}
