# What the managed knowledge base (Amazon Bedrock) stands on: its documents' bucket, a table that migrations make in this database, and a role's password.
# Bedrock reaches a database by the Data API of Aurora only. With rds-postgres there is no managed knowledge base, and the platform's own search serves.

locals {
  knowledge_secret = "${local.prefix}/database/knowledge"

  knowledge = !local.aurora ? null : {
    cluster_arn   = local.database_arn
    database_name = var.database_name
    secret = {
      name    = local.knowledge_secret
      key_arn = local.key["database"]
      # Bedrock insists on the ARN with the service's six characters, which the stack puts out. From an AWS whose stacks make no secrets there is the
      # pattern only: policies take it, the tier app refuses it.
      arn = try(aws_cloudformation_stack.knowledge[0].outputs["SecretArn"], "arn:${local.partition}:secretsmanager:${var.region}:${var.account_id}:secret:${local.knowledge_secret}-??????")
    }
  }
}

# A stack of its own: with the other engine it goes, where those of secrets.yaml must never. Migrations set whatever password it has.
resource "aws_cloudformation_stack" "knowledge" {
  count = local.aurora ? 1 : 0

  name          = "${local.prefix}-knowledge"
  template_body = file("${path.module}/knowledge.yaml")
  parameters    = { Prefix = local.prefix, DatabaseKey = local.key["database"] }

  depends_on = [terraform_data.inputs]
}
