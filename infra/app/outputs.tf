# The names are those of a one-machine platform's /local/outputs.json, so that clients read both alike.

output "region" {
  description = "The deployment's AWS region."
  value       = var.region
}

output "api_url" {
  description = "HTTP API URL: {api_url}/graphql, {api_url}/api/… and {api_url}/webhooks/…."
  value       = local.api_url
}

output "appsync_url" {
  description = "Subscription API URL: queries and mutations at {appsync_url}/graphql."
  value       = local.appsync_url
}

output "realtime_url" {
  description = "WebSocket address of subscriptions: {realtime_url}/graphql, with a name of one's own {realtime_url}/graphql/realtime."
  value       = local.realtime_url
}

output "web_app_url" {
  description = "Web app URL: the console."
  value       = local.web_app_url
}

output "user_pool_id" {
  description = "Id of the identity pool: the Cognito user pool."
  value       = var.foundation.user_pool.id
}

output "client_id" {
  description = "The console's client of the user pool."
  value       = var.foundation.user_pool.client_id
}

output "sign_in_url" {
  description = "Where users sign in by browser."
  value       = var.foundation.user_pool.sign_in_url
}

output "assets_bucket" {
  description = "Where the console's files belong."
  value       = var.data.buckets.assets.name
}

output "distribution_id" {
  description = "The CloudFront distribution of the console; its cache is invalidated when the console's files change."
  value       = aws_cloudfront_distribution.console.id
}

output "anchor_bucket" {
  description = "The write-once bucket of the audit log, for audit-verifier."
  value       = var.data.buckets.audit.name
}

output "anchor_origin" {
  description = "Name of the audit log in its checkpoints, for audit-verifier."
  value       = local.anchor_origin
}

output "exports_bucket" {
  description = "The bucket of compliance exports."
  value       = var.data.buckets.exports.name
}

output "alarms_topic_arn" {
  description = "The topic that alarms and the budget write to; subscribe what should hear them."
  value       = aws_sns_topic.alarms.arn
}

output "dead_letters_url" {
  description = "The queue of calls that failed for good."
  value       = aws_sqs_queue.dead_letters.url
}

output "schedule_dead_letters_url" {
  description = "The queue of occurrences of tenants' schedules that could not be started."
  value       = aws_sqs_queue.schedule_dead_letters.url
}

output "dashboard_url" {
  description = "The deployment's dashboard in CloudWatch."
  value       = "https://${var.region}.console.aws.amazon.com/cloudwatch/home?region=${var.region}#dashboards/dashboard/${local.prefix}"
}

output "function_names" {
  description = "Name of each function in Lambda, by its row of schema/routes.json."
  value       = { for name, function in merge(module.first, module.function) : name => function.name }
}

output "function_roles" {
  description = "The role of each function, by its row of schema/routes.json."
  value       = { for name, set in local.set_of : name => local.roles[set].name }
}

output "needs" {
  description = "The words of schema/routes.json that this tier grants something for."
  value       = sort(concat(keys(local.vocabulary), ["invoke:"]))
}

output "runtime_arn" {
  description = "The agent runtime, null where turns run in the function dispatch-turn."
  value       = local.with_runtime ? local.runtime_arn : null
}

output "code_interpreter_id" {
  description = "The code interpreter, null with code_interpreter = false."
  value       = var.code_interpreter ? local.interpreter_id : null
}

output "memory_id" {
  description = "The managed memory, null where the platform's own memory service is on."
  value       = var.memory_service ? null : aws_cloudformation_stack.memory[0].outputs["MemoryId"]
}

output "knowledge_base_id" {
  description = "The managed knowledge base, null where the platform's own search serves knowledge: with rds-postgres or knowledge_base = false."
  value       = one(aws_bedrockagent_knowledge_base.documents[*].id)
}

output "knowledge_data_source_id" {
  description = "The knowledge base's data source, the bucket of documents; null where there is none."
  value       = one(aws_bedrockagent_data_source.documents[*].data_source_id)
}
