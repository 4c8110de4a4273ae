# The managed knowledge base: Bedrock cuts the documents of a bucket into passages, embeds them, and keeps them in a table of the database. The table is
# there before it is asked for: migrations make it (pkg/postgres/migrate). One knowledge base is of all tenants: a document's attribute tenant_id, which Bedrock
# reads from the <document>.metadata.json beside it, has a column to filter by.

locals {
  knowledge = var.knowledge_base ? var.data.knowledge : null # null also with rds-postgres, which Bedrock cannot reach
  embedding = "${local.arn}:bedrock:${var.region}::foundation-model/${var.embedding_model_id}"
}

resource "aws_bedrockagent_knowledge_base" "documents" {
  count = local.knowledge == null ? 0 : 1

  name        = local.prefix
  description = "Documents of the tenants of ${local.prefix}"
  role_arn    = aws_iam_role.knowledge[0].arn

  knowledge_base_configuration {
    type = "VECTOR"

    vector_knowledge_base_configuration {
      embedding_model_arn = local.embedding
    }
  }

  storage_configuration {
    type = "RDS"

    rds_configuration {
      resource_arn           = local.knowledge.cluster_arn
      database_name          = local.knowledge.database_name
      table_name             = "knowledge_base.chunks"
      credentials_secret_arn = local.knowledge.secret.arn

      field_mapping {
        primary_key_field = "id"
        vector_field      = "embedding"
        text_field        = "chunks"
        metadata_field    = "metadata"
      }
    }
  }

  lifecycle {
    precondition {
      condition     = !strcontains(local.knowledge.secret.arn, "?")
      error_message = "data names no secret of the knowledge base, for its stack put none out: apply the tier data again, or do without: knowledge_base = false."
    }
  }

  # Bedrock looks for the table, as its role, when the knowledge base is made.
  depends_on = [aws_iam_role_policy.knowledge, aws_lambda_invocation.before]
}

resource "aws_bedrockagent_data_source" "documents" {
  count = local.knowledge == null ? 0 : 1

  name                 = "documents"
  description          = "Documents in ${var.data.buckets.knowledge.name}"
  knowledge_base_id    = aws_bedrockagent_knowledge_base.documents[0].id
  data_deletion_policy = "DELETE" # its passages go with it: they are made of the documents again

  data_source_configuration {
    type = "S3"

    s3_configuration {
      bucket_arn              = var.data.buckets.knowledge.arn
      bucket_owner_account_id = var.account_id
    }
  }

  # Bedrock's own default, said so that it stays: another one makes another data source.
  vector_ingestion_configuration {
    chunking_configuration {
      chunking_strategy = "FIXED_SIZE"

      fixed_size_chunking_configuration {
        max_tokens         = 300
        overlap_percentage = 20
      }
    }
  }
}

resource "aws_iam_role" "knowledge" {
  count = local.knowledge == null ? 0 : 1

  name        = "${local.prefix}-knowledge"
  description = "Bedrock, for the knowledge base: reads documents, embeds them, keeps passages in the database"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "bedrock.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = var.account_id }
        ArnLike      = { "aws:SourceArn" = "${local.arn}:bedrock:${local.here}:knowledge-base/*" } # whose id comes with it
      }
    }]
  })
}

resource "aws_iam_role_policy" "knowledge" {
  count = local.knowledge == null ? 0 : 1

  name = "knowledge"
  role = aws_iam_role.knowledge[0].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        { Effect = "Allow", Action = ["bedrock:InvokeModel"], Resource = [local.embedding] },
        { Effect = "Allow", Action = ["rds:DescribeDBClusters", "rds-data:BatchExecuteStatement", "rds-data:ExecuteStatement"], Resource = [local.knowledge.cluster_arn] },
        { Effect = "Allow", Action = ["s3:ListBucket"], Resource = [var.data.buckets.knowledge.arn] },
        { Effect = "Allow", Action = ["s3:GetObject"], Resource = ["${var.data.buckets.knowledge.arn}/*"] },
      ],
      local.use_key["knowledge"].read,
      local.read_secret["DATABASE_KNOWLEDGE"],
    )
  })
}
