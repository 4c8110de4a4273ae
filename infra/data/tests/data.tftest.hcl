# The whole tier, applied to a provider that answers by itself, with each of the two engines.

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
    key_arns = { for category in ["database", "platform", "emission", "oauth", "tools", "integrations", "mail", "objects", "audit", "assets", "logs"] :
      category => "arn:aws:kms:eu-central-1:123456789012:key/${category}"
    }
  }
}

run "aurora" {
  assert {
    condition     = length(aws_rds_cluster.this) == 1 && length(aws_rds_cluster_instance.this) == 1 && length(aws_db_instance.this) == 0
    error_message = "aurora-serverless is one cluster with one instance."
  }
  assert {
    condition     = output.database_urls["app"] == "postgres://agentplatform_app@agentplatform-dev.cluster-mock.eu-central-1.rds.amazonaws.com:5432/agentplatform?sslmode=verify-full"
    error_message = "Functions connect as agentplatform_app, verify the server, and have no password."
  }
  assert {
    condition     = output.database_connect_arns["ledger"] == "arn:aws:rds-db:eu-central-1:123456789012:dbuser:cluster-MOCK/agentplatform_ledger"
    error_message = "The ledger's rds-db:connect names something else."
  }
  assert {
    condition     = toset(keys(output.buckets)) == toset(["skills", "knowledge", "exports", "mail", "assets", "functions", "audit"]) && output.buckets["audit"].name == "agentplatform-dev-audit-123456789012"
    error_message = "There is a bucket for each purpose, <name>-<stage>-<purpose>-<account>."
  }
  assert {
    condition     = output.secrets["PAGE_TOKEN_KEY"].name == "agentplatform-dev/platform/PAGE_TOKEN_KEY" && output.verifier_role_arn == ""
    error_message = "Secrets are named <prefix>/<category>/<setting>; without principals there is no verifier."
  }
  assert {
    condition     = alltrue([for name, value in output.data : value != null])
    error_message = "The tier app would read a null."
  }
  assert {
    condition = aws_rds_cluster.this[0].enable_http_endpoint && output.data.knowledge == {
      cluster_arn   = aws_rds_cluster.this[0].arn
      database_name = "agentplatform"
      secret = {
        name    = "agentplatform-dev/database/knowledge"
        arn     = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:agentplatform-dev/database/knowledge-AbCdEf"
        key_arn = "arn:aws:kms:eu-central-1:123456789012:key/database"
      }
    }
    error_message = "Bedrock cannot reach the database, or not by the secret's own ARN."
  }
}

run "rds" {
  variables {
    database_engine      = "rds-postgres"
    rds_multi_az         = true
    performance_insights = false
    backup_days          = 14
    verifier_principals  = ["arn:aws:iam::210987654321:role/auditor"]
  }

  assert {
    condition     = length(aws_rds_cluster.this) == 0 && length(aws_db_instance.this) == 1 && aws_db_instance.this[0].backup_retention_period == 14
    error_message = "rds-postgres is one server."
  }
  assert {
    condition     = output.data.knowledge == null && length(aws_cloudformation_stack.knowledge) == 0
    error_message = "Bedrock reaches no database but Aurora: there is no managed knowledge base."
  }
  assert {
    condition     = output.database_connect_arns["app"] == "arn:aws:rds-db:eu-central-1:123456789012:dbuser:db-MOCK/agentplatform_app" && output.database_id == "agentplatform-dev"
    error_message = "rds-db:connect names something else."
  }
  assert {
    condition     = aws_db_instance.this[0].storage_encrypted && aws_db_instance.this[0].deletion_protection && !aws_db_instance.this[0].skip_final_snapshot && !aws_db_instance.this[0].publicly_accessible && aws_db_instance.this[0].iam_database_authentication_enabled && !aws_db_instance.this[0].delete_automated_backups
    error_message = "The server is less protected than the cluster."
  }
  assert {
    condition     = anytrue([for p in aws_db_parameter_group.this[0].parameter : p.name == "rds.force_ssl" && p.value == "1"])
    error_message = "The server takes connections without TLS."
  }
  assert {
    condition     = output.verifier_role_arn != ""
    error_message = "An auditor is named, so there is a role for it."
  }
}

run "behind_a_proxy" {
  variables {
    database_proxy      = true
    verifier_principals = ["arn:aws:iam::210987654321:role/auditor"]
  }

  assert {
    condition     = output.data.database_urls["app"] == "postgres://agentplatform_app@agentplatform-dev.proxy-mock.eu-central-1.rds.amazonaws.com:5432/agentplatform?sslmode=verify-full"
    error_message = "Functions connect to the proxy."
  }
  assert {
    condition     = output.data.database_connect_arns["app"] == "arn:aws:rds-db:eu-central-1:123456789012:dbuser:prx-mock/agentplatform_app"
    error_message = "Functions may connect to the proxy, and to nothing behind it."
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.proxy[0].policy).Statement[0].Resource[0] == "arn:aws:rds-db:eu-central-1:123456789012:dbuser:cluster-MOCK/agentplatform_app"
    error_message = "The proxy may connect as the functions' roles."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.proxy[0].referenced_security_group_id == "sg-database" && aws_vpc_security_group_egress_rule.proxy[0].from_port == 5432
    error_message = "Nothing reaches the database from the proxy."
  }
  assert {
    condition     = strcontains(aws_iam_role_policy.verifier[0].policy, "dbuser:cluster-MOCK/agentplatform_reader")
    error_message = "The verifier goes to the database itself."
  }
}

run "for_trials" {
  command = plan

  variables {
    deletion_protection   = false
    final_snapshot        = null
    secret_recovery_days  = 0
    force_destroy_buckets = true
    database_version      = "15.12"
    aurora_min_capacity   = 0
    audit_cold_small      = false
  }

  assert {
    condition     = aws_rds_cluster.this[0].skip_final_snapshot && !aws_rds_cluster.this[0].deletion_protection && aws_rds_cluster_parameter_group.this[0].family == "aurora-postgresql15"
    error_message = "A trial cannot be cleared away."
  }
}

run "foundation_of_another_stage" {
  command = plan

  variables {
    stage = "prod"
  }

  expect_failures = [terraform_data.inputs]
}

run "capacity_upside_down" {
  command = plan

  variables {
    aurora_min_capacity = 4
    aurora_max_capacity = 2
  }

  expect_failures = [terraform_data.inputs]
}

run "storage_that_cannot_grow" {
  command = plan

  variables {
    database_engine    = "rds-postgres"
    rds_storage_gb     = 200
    rds_max_storage_gb = 200
  }

  expect_failures = [terraform_data.inputs]
}
