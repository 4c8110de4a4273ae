# The HTTP API: a route for each `http` trigger. It checks the tokens of users and operators itself; webhooks and agent runtimes bring secrets that
# their functions check.

locals {
  by_token = ["user", "operator"] # rows whose auth is a token of the identity pool
}

resource "aws_apigatewayv2_api" "platform" {
  name          = local.prefix
  protocol_type = "HTTP"

  cors_configuration {
    allow_origins  = var.allowed_origins
    allow_methods  = sort(distinct(concat(["OPTIONS"], [for route in keys(local.routes) : split(" ", route)[0]])))
    allow_headers  = ["authorization", "content-type", "if-match", "idempotency-key"]
    expose_headers = ["etag", "location", "retry-after", "x-request-id"]
    max_age        = 3600
  }

  # With a name of its own, the API has no other: what is allowed for the one would be forgotten for the other.
  disable_execute_api_endpoint = local.dns != null
}

resource "aws_apigatewayv2_authorizer" "users" {
  api_id           = aws_apigatewayv2_api.platform.id
  name             = "users"
  authorizer_type  = "JWT"
  identity_sources = ["$request.header.Authorization"]

  jwt_configuration {
    issuer   = var.foundation.user_pool.issuer
    audience = [var.foundation.user_pool.client_id]
  }
}

resource "aws_apigatewayv2_integration" "function" {
  for_each = local.routed

  api_id                 = aws_apigatewayv2_api.platform.id
  description            = each.key
  integration_type       = "AWS_PROXY"
  integration_method     = "POST"
  integration_uri        = module.function[each.key].invoke_arn
  payload_format_version = "2.0"
  timeout_milliseconds   = min(local.rows[each.key].timeout, 30) * 1000
}

resource "aws_apigatewayv2_route" "function" {
  for_each = local.routes

  api_id             = aws_apigatewayv2_api.platform.id
  route_key          = each.key
  target             = "integrations/${aws_apigatewayv2_integration.function[each.value].id}"
  authorization_type = contains(local.by_token, local.rows[each.value].auth) ? "JWT" : "NONE"
  authorizer_id      = contains(local.by_token, local.rows[each.value].auth) ? aws_apigatewayv2_authorizer.users.id : null
}

resource "aws_lambda_permission" "http" {
  for_each = local.routed

  statement_id  = "http-api"
  action        = "lambda:InvokeFunction"
  function_name = module.function[each.key].name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.platform.execution_arn}/*"
}

resource "aws_apigatewayv2_stage" "default" {
  api_id      = aws_apigatewayv2_api.platform.id
  name        = "$default"
  auto_deploy = true

  default_route_settings {
    throttling_rate_limit    = var.api_rate_limit
    throttling_burst_limit   = var.api_burst_limit
    detailed_metrics_enabled = false # they cost by route, and alarms look at the whole API
  }

  # The path without its query, in which some senders put a token; no header.
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.http.arn
    format = jsonencode({
      requestId         = "$context.requestId"
      time              = "$context.requestTime"
      route             = "$context.routeKey"
      path              = "$context.path"
      status            = "$context.status"
      latency           = "$context.responseLatency"
      integrationStatus = "$context.integrationStatus"
      integrationError  = "$context.integrationErrorMessage"
      authorizerError   = "$context.authorizer.error"
      error             = "$context.error.message"
      bytes             = "$context.responseLength"
      ip                = "$context.identity.sourceIp"
      userAgent         = "$context.identity.userAgent"
      sub               = "$context.authorizer.claims.sub"
    })
  }
}

# Under this beginning, log groups of a service share one entry of the account's resource policy, which is short.
resource "aws_cloudwatch_log_group" "http" {
  name              = "/aws/vendedlogs/${local.prefix}/http"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.foundation.key_arns["logs"]
}
