# Secrets, each under its category's key.
#
# The settings that functions read as secrets are made by Secrets Manager itself, from a CloudFormation template: Terraform has no way before 1.11 to make a
# value that its state does not hold. So nobody has seen them: not the state, not an output, not whoever deploys. Functions read them by name.
# A new value is put by aws secretsmanager put-secret-value; neither tool undoes that.

locals {
  # Setting in pkg/cloud -> category. secrets.yaml makes one secret for each.
  settings = {
    API_AUTH_SECRET    = "platform"
    PAGE_TOKEN_KEY     = "platform"
    AUDIT_EMISSION_KEY = "emission"
  }

  # Known before the secrets are made. The service puts a hyphen and six characters of its own behind a name.
  secrets = { for setting, category in local.settings : setting => {
    name    = "${local.prefix}/${category}/${setting}"
    arn     = "arn:${local.partition}:secretsmanager:${var.region}:${var.account_id}:secret:${local.prefix}/${category}/${setting}-??????"
    key_arn = local.key[category]
  } }

  # ARNs to connect to the database as each role, for rds-db:connect.
  connect = { for role in ["app", "ledger", "reader"] :
    role => "arn:${local.partition}:rds-db:${var.region}:${var.account_id}:dbuser:${local.resource_id}/agentplatform_${role}"
  }
}

resource "aws_cloudformation_stack" "secrets" {
  name          = "${local.prefix}-secrets"
  template_body = file("${path.module}/secrets.yaml")

  parameters = {
    Prefix      = local.prefix
    PlatformKey = local.key["platform"]
    EmissionKey = local.key["emission"]
  }

  # A value that is made anew ends every page token and every pending audit event's proof of origin: no update of the stack may do that by the way.
  policy_body = jsonencode({
    Statement = [
      { Effect = "Allow", Principal = "*", Action = "Update:Modify", Resource = "*" },
      { Effect = "Deny", Principal = "*", Action = ["Update:Replace", "Update:Delete"], Resource = "*" },
    ]
  })

  depends_on = [terraform_data.inputs]
}

# The database owner's: what the operator gave as db_password, for the function that runs migrations.
resource "aws_secretsmanager_secret" "database" {
  name                    = "${local.prefix}/database/owner"
  description             = "Owner of the database, for migrations"
  kms_key_id              = local.key["database"]
  recovery_window_in_days = var.secret_recovery_days
}

resource "aws_secretsmanager_secret_version" "database" {
  secret_id = aws_secretsmanager_secret.database.id

  secret_string = jsonencode({
    engine   = "postgres"
    host     = local.host
    port     = 5432
    dbname   = var.database_name
    username = local.owner
    password = var.db_password
  })
}
