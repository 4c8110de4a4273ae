# Names of one's own, where the foundation tier has a domain: the console under the name itself, api. and graphql. below it.

locals {
  dns = var.foundation.dns

  # What clients are told. The platform itself publishes to the API's own address, which its signature is for.
  api_url      = local.dns == null ? aws_apigatewayv2_api.platform.api_endpoint : "https://api.${local.dns.name}"
  appsync_url  = local.dns == null ? local.graphql_url : "https://graphql.${local.dns.name}"
  realtime_url = local.dns == null ? replace(replace(local.graphql_url, "https://", "wss://"), ".appsync-api.", ".appsync-realtime-api.") : "wss://graphql.${local.dns.name}"
  web_app_url  = "https://${local.dns == null ? aws_cloudfront_distribution.console.domain_name : local.dns.name}"
}

resource "aws_apigatewayv2_domain_name" "platform" {
  count = local.dns == null ? 0 : 1

  domain_name = "api.${local.dns.name}"

  domain_name_configuration {
    certificate_arn = local.dns.certificate_arn
    endpoint_type   = "REGIONAL"
    security_policy = "TLS_1_2"
  }
}

resource "aws_apigatewayv2_api_mapping" "platform" {
  count = local.dns == null ? 0 : 1

  api_id      = aws_apigatewayv2_api.platform.id
  domain_name = aws_apigatewayv2_domain_name.platform[0].id
  stage       = aws_apigatewayv2_stage.default.id
}

resource "aws_appsync_domain_name" "platform" {
  count = local.dns == null ? 0 : 1

  domain_name     = "graphql.${local.dns.name}"
  certificate_arn = local.dns.cdn_certificate_arn
}

resource "aws_appsync_domain_name_api_association" "platform" {
  count = local.dns == null ? 0 : 1

  api_id      = aws_appsync_graphql_api.platform.id
  domain_name = aws_appsync_domain_name.platform[0].domain_name
}

locals {
  names = local.dns == null ? {} : {
    api = {
      name   = "api.${local.dns.name}"
      target = aws_apigatewayv2_domain_name.platform[0].domain_name_configuration[0].target_domain_name
      zone   = aws_apigatewayv2_domain_name.platform[0].domain_name_configuration[0].hosted_zone_id
      types  = ["A"]
    }
    graphql = {
      name   = "graphql.${local.dns.name}"
      target = aws_appsync_domain_name.platform[0].appsync_domain_name
      zone   = aws_appsync_domain_name.platform[0].hosted_zone_id
      types  = ["A"]
    }
    console = {
      name   = local.dns.name
      target = aws_cloudfront_distribution.console.domain_name
      zone   = aws_cloudfront_distribution.console.hosted_zone_id
      types  = ["A", "AAAA"]
    }
  }
}

resource "aws_route53_record" "platform" {
  for_each = merge([for key, name in local.names : { for type in name.types : "${key}-${type}" => merge(name, { type = type }) }]...)

  zone_id = local.dns.zone_id
  name    = each.value.name
  type    = each.value.type

  alias {
    name                   = each.value.target
    zone_id                = each.value.zone
    evaluate_target_health = false
  }
}
