output "database_host" {
  description = "The database's host, within the network."
  value       = local.host
}

output "database_port" {
  description = "The database's port."
  value       = 5432
}

output "database_name" {
  description = "The database's name within the server."
  value       = var.database_name
}

output "database_id" {
  description = "Identifier of the cluster or server, for alarms and for restoring."
  value       = local.database
}

output "database_arn" {
  description = "ARN of the cluster or server."
  value       = local.database_arn
}

output "database_urls" {
  description = "Connection URLs of the functions' roles (app, ledger, reader). They have no password, a token of IAM takes its place, and sslrootcert is for the function to add: the RDS certificate authorities, where it has them."
  value       = { for role in keys(local.connect) : role => "postgres://agentplatform_${role}@${local.front}:5432/${var.database_name}?sslmode=verify-full" }
}

output "database_connect_arns" {
  description = "By role, what rds-db:connect must name to connect as it."
  value       = local.front_connect
}

output "database_owner_secret_arn" {
  description = "Secret of the database's owner, for the function that runs migrations."
  value       = aws_secretsmanager_secret.database.arn
}

output "buckets" {
  description = "Buckets by purpose (skills, knowledge, exports, assets, functions, audit): name, ARN and key."
  value       = local.bucket_facts
}

output "assets_domain" {
  description = "Host of the assets' bucket, the CDN's origin."
  value       = module.bucket["assets"].domain
}

output "verifier_role_arn" {
  description = "Role of the audit log's verifier; empty without verifier_principals."
  value       = one(aws_iam_role.verifier[*].arn) != null ? one(aws_iam_role.verifier[*].arn) : ""
}

output "secrets" {
  description = "By setting, its secret: name, ARN for policies, key. Never a value."
  value       = local.secrets
}

output "parameter_path" {
  description = "Path of the parameters that hold OAuth tokens (connections/, under the key oauth), API keys (tools/) and secrets of integrations (integrations/), each under its category's key."
  value       = "/${local.prefix}"
}

locals {
  bucket_facts = merge(
    { for purpose, b in module.bucket : purpose => { name = b.name, arn = b.arn, key_arn = local.key[local.buckets[purpose].key] } },
    { audit = { name = module.audit.name, arn = module.audit.arn, key_arn = local.key["audit"] } },
  )
}

# The tier app takes this whole as one variable: TF_VAR_data="$(terraform output -json data)". It reads no state of this tier.
output "data" {
  description = "All that the tier app needs of this one, as the value of its variable data."
  value = {
    database_engine        = var.database_engine
    database_host          = local.host
    database_name          = var.database_name
    database_id            = local.database
    database_resource_id   = local.resource_id
    runtime_repository_url = aws_ecr_repository.runtime.repository_url
    database_arn           = local.database_arn
    database_connect_arns  = local.front_connect
    database_urls          = { for role in keys(local.connect) : role => "postgres://agentplatform_${role}@${local.front}:5432/${var.database_name}?sslmode=verify-full" }
    database_owner         = { name = aws_secretsmanager_secret.database.name, arn = aws_secretsmanager_secret.database.arn, key_arn = local.key["database"], connect_arn = replace(local.connect["app"], "agentplatform_app", local.owner) }
    knowledge              = local.knowledge
    buckets                = local.bucket_facts
    assets_domain          = module.bucket["assets"].domain
    secrets                = local.secrets
    parameter_path         = "/${local.prefix}"
  }
}
