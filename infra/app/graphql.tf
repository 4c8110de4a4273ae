# The GraphQL API on AppSync: the one schema, users of the identity pool, and IAM for what the platform publishes.

locals {
  sdl = file("${local.root}/schema/graphql/schema.graphql")

  # Mutations that the schema gives to IAM principals alone.
  publishing = toset([for found in regexall("(?m)^  (\\w+)\\([^)]*\\): \\w+!? @aws_iam$", local.sdl) : found[0]])

  # The provider cannot set an API's environment variables, so the names of the batched fields are put in their place.
  batched         = join(",", sort([for field, name in local.fields : field if local.rows[name].batch]))
  resolver_source = file("${local.root}/schema/graphql/resolver.js")
  resolver        = replace(local.resolver_source, "ctx.env.BATCH_FIELDS", jsonencode(local.batched))

  graphql_arn = aws_appsync_graphql_api.platform.arn
  graphql_url = trimsuffix(aws_appsync_graphql_api.platform.uris["GRAPHQL"], "/graphql")
}

resource "aws_appsync_graphql_api" "platform" {
  name                = local.prefix
  schema              = local.sdl
  authentication_type = "AMAZON_COGNITO_USER_POOLS"
  query_depth_limit   = 10
  xray_enabled        = true

  user_pool_config {
    user_pool_id        = var.foundation.user_pool.id
    aws_region          = var.region
    app_id_client_regex = "^${var.foundation.user_pool.client_id}$"
    default_action      = "ALLOW"
  }

  additional_authentication_provider {
    authentication_type = "AWS_IAM"
  }

  # Verbose content is what users say: it stays out of the log.
  log_config {
    cloudwatch_logs_role_arn = aws_iam_role.graphql_log.arn
    field_log_level          = "ERROR"
    exclude_verbose_content  = true
  }

  lifecycle {
    precondition {
      condition     = local.resolver != local.resolver_source && !strcontains(local.resolver, "ctx.env") && length(local.publishing) > 0
      error_message = "schema/graphql/resolver.js must name the batched fields by ctx.env.BATCH_FIELDS and nothing else of ctx.env, and schema.graphql must have mutations with @aws_iam on one line each."
    }
  }

  depends_on = [aws_iam_role_policy.graphql_log]
}

# ---- Fields with a function

resource "aws_appsync_datasource" "function" {
  for_each = local.resolving

  api_id           = aws_appsync_graphql_api.platform.id
  name             = replace(each.key, "-", "_") # AppSync allows no hyphen
  type             = "AWS_LAMBDA"
  service_role_arn = aws_iam_role.graphql.arn

  lambda_config {
    function_arn = module.function[each.key].arn
  }

  depends_on = [aws_iam_role_policy.graphql]
}

resource "aws_appsync_resolver" "field" {
  for_each = local.fields

  api_id         = aws_appsync_graphql_api.platform.id
  type           = split(".", each.key)[0]
  field          = split(".", each.key)[1]
  kind           = "UNIT"
  data_source    = aws_appsync_datasource.function[each.value].name
  code           = local.resolver
  max_batch_size = local.rows[each.value].batch ? 100 : 0 # a page has at most as many

  runtime {
    name            = "APPSYNC_JS"
    runtime_version = "1.0.0"
  }
}

# ---- What the platform publishes

resource "aws_appsync_datasource" "none" {
  api_id = aws_appsync_graphql_api.platform.id
  name   = "none"
  type   = "NONE"
}

resource "aws_appsync_resolver" "publish" {
  for_each = local.publishing

  api_id      = aws_appsync_graphql_api.platform.id
  type        = "Mutation"
  field       = each.key
  kind        = "UNIT"
  data_source = aws_appsync_datasource.none.name
  code        = file("${local.root}/schema/graphql/publish.js")

  runtime {
    name            = "APPSYNC_JS"
    runtime_version = "1.0.0"
  }
}

# ---- Roles

resource "aws_iam_role" "graphql" {
  name               = "${local.prefix}-graphql-api"
  description        = "AppSync, for the functions behind the schema's fields"
  assume_role_policy = local.assumed_by["appsync"]
}

resource "aws_iam_role_policy" "graphql" {
  name = "invoke"
  role = aws_iam_role.graphql.name
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = local.call_fields
  })
}

resource "aws_iam_role" "graphql_log" {
  name               = "${local.prefix}-graphql-log"
  description        = "AppSync, for its log"
  assume_role_policy = local.assumed_by["appsync"]
}

# The log group is named after the API, which is made with this role: so it is named by its form.
resource "aws_iam_role_policy" "graphql_log" {
  name = "log"
  role = aws_iam_role.graphql_log.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
      Resource = ["${local.arn}:logs:${local.here}:log-group:/aws/appsync/apis/*"]
    }]
  })
}

resource "aws_cloudwatch_log_group" "graphql" {
  name              = "/aws/appsync/apis/${aws_appsync_graphql_api.platform.id}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.foundation.key_arns["logs"]
}

locals {
  # A service may take a role for this account's things only.
  assumed_by = { for service in ["appsync", "scheduler", "states", "bedrock-agentcore"] : service => jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "${service}.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
    }]
  }) }
}
