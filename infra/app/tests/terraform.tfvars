# A deployment that never was, for tests and offline plans: what the tiers below put out, and what an operator may say.

stage           = "dev"
region          = "eu-central-1"
account_id      = "123456789012"
dist            = ".terraform/zips"
agent_runtime   = false
operator_emails = ["ops@acme.test", "ops2@acme.test"]
guardrail_ids   = ["gr1a2b3c4d5e"]
alarm_emails    = ["oncall@acme.test"]
mail_from       = "agents@mail.acme.test"

push_applications = {
  apns = "arn:aws:sns:eu-central-1:123456789012:app/APNS/agents"
  fcm  = "arn:aws:sns:eu-central-1:123456789012:app/GCM/agents"
}

foundation = {
  prefix                      = "agentplatform-dev"
  region                      = "eu-central-1"
  account_id                  = "123456789012"
  private_subnet_ids          = ["subnet-0a", "subnet-0b"]
  functions_security_group_id = "sg-0functions"
  runtime_security_group_id   = "sg-0runtime"
  key_arns                    = { logs = "arn:aws:kms:eu-central-1:123456789012:key/logs", tools = "arn:aws:kms:eu-central-1:123456789012:key/tools", integrations = "arn:aws:kms:eu-central-1:123456789012:key/integrations", oauth = "arn:aws:kms:eu-central-1:123456789012:key/oauth" }
  anchor_signing_key_arn      = "arn:aws:kms:eu-central-1:123456789012:key/anchor"
  email_identity_arn          = "arn:aws:ses:eu-central-1:123456789012:identity/mail.acme.test"
  mail_domain                 = "in.mail.acme.test"
  user_pool = {
    id          = "eu-central-1_a1B2c3D4e"
    arn         = "arn:aws:cognito-idp:eu-central-1:123456789012:userpool/eu-central-1_a1B2c3D4e"
    client_id   = "1example23456789"
    issuer      = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_a1B2c3D4e"
    sign_in_url = "https://agentplatform-dev.auth.eu-central-1.amazoncognito.com"
  }
}

data = {
  database_urls = {
    app    = "postgres://agentplatform_app@db.cluster-abcdefghijkl.eu-central-1.rds.amazonaws.com:5432/agentplatform?sslmode=verify-full"
    ledger = "postgres://agentplatform_ledger@db.cluster-abcdefghijkl.eu-central-1.rds.amazonaws.com:5432/agentplatform?sslmode=verify-full"
    reader = "postgres://agentplatform_reader@db.cluster-abcdefghijkl.eu-central-1.rds.amazonaws.com:5432/agentplatform?sslmode=verify-full"
  }
  database_resource_id = "cluster-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
  database_connect_arns = {
    app    = "arn:aws:rds-db:eu-central-1:123456789012:dbuser:cluster-ABCDEFGHIJKLMNOPQRSTUVWXYZ/agentplatform_app"
    ledger = "arn:aws:rds-db:eu-central-1:123456789012:dbuser:cluster-ABCDEFGHIJKLMNOPQRSTUVWXYZ/agentplatform_ledger"
    reader = "arn:aws:rds-db:eu-central-1:123456789012:dbuser:cluster-ABCDEFGHIJKLMNOPQRSTUVWXYZ/agentplatform_reader"
  }
  database_owner = {
    name        = "agentplatform-dev/database/owner"
    arn         = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:agentplatform-dev/database/owner-AbCdEf"
    key_arn     = "arn:aws:kms:eu-central-1:123456789012:key/database"
    connect_arn = "arn:aws:rds-db:eu-central-1:123456789012:dbuser:cluster-ABCDEFGHIJKLMNOPQRSTUVWXYZ/platform_admin"
  }
  knowledge = {
    cluster_arn   = "arn:aws:rds:eu-central-1:123456789012:cluster:agentplatform-dev"
    database_name = "agentplatform"
    secret = {
      name    = "agentplatform-dev/database/knowledge"
      arn     = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:agentplatform-dev/database/knowledge-AbCdEf"
      key_arn = "arn:aws:kms:eu-central-1:123456789012:key/database"
    }
  }
  buckets = {
    knowledge = { name = "agentplatform-dev-knowledge-123456789012", arn = "arn:aws:s3:::agentplatform-dev-knowledge-123456789012", key_arn = "arn:aws:kms:eu-central-1:123456789012:key/objects" }
    audit     = { name = "agentplatform-dev-audit-123456789012", arn = "arn:aws:s3:::agentplatform-dev-audit-123456789012", key_arn = "arn:aws:kms:eu-central-1:123456789012:key/audit" }
    exports   = { name = "agentplatform-dev-exports-123456789012", arn = "arn:aws:s3:::agentplatform-dev-exports-123456789012", key_arn = "arn:aws:kms:eu-central-1:123456789012:key/objects" }
    mail      = { name = "agentplatform-dev-mail-123456789012", arn = "arn:aws:s3:::agentplatform-dev-mail-123456789012", key_arn = "arn:aws:kms:eu-central-1:123456789012:key/mail" }
    functions = { name = "agentplatform-dev-functions-123456789012", arn = "arn:aws:s3:::agentplatform-dev-functions-123456789012", key_arn = "arn:aws:kms:eu-central-1:123456789012:key/objects" }
    assets    = { name = "agentplatform-dev-assets-123456789012", arn = "arn:aws:s3:::agentplatform-dev-assets-123456789012", key_arn = "arn:aws:kms:eu-central-1:123456789012:key/assets" }
  }
  secrets = {
    PAGE_TOKEN_KEY = {
      name    = "agentplatform-dev/platform/PAGE_TOKEN_KEY"
      arn     = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:agentplatform-dev/platform/PAGE_TOKEN_KEY-??????"
      key_arn = "arn:aws:kms:eu-central-1:123456789012:key/platform"
    }
    AUDIT_EMISSION_KEY = {
      name    = "agentplatform-dev/emission/AUDIT_EMISSION_KEY"
      arn     = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:agentplatform-dev/emission/AUDIT_EMISSION_KEY-??????"
      key_arn = "arn:aws:kms:eu-central-1:123456789012:key/emission"
    }
    API_AUTH_SECRET = {
      name    = "agentplatform-dev/platform/API_AUTH_SECRET"
      arn     = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:agentplatform-dev/platform/API_AUTH_SECRET-??????"
      key_arn = "arn:aws:kms:eu-central-1:123456789012:key/platform"
    }
  }
  runtime_repository_url = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/agentplatform-dev/agent-runtime"
}
