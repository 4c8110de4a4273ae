# What tests with a mocked provider get for attributes that AWS would set: ARNs where other resources insist on one.

mock_resource "aws_kms_key" {
  defaults = { arn = "arn:aws:kms:eu-central-1:123456789012:key/00000000-0000-4000-8000-000000000000", key_id = "00000000-0000-4000-8000-000000000000" }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:eu-central-1:123456789012:log-group:mock" }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::123456789012:role/mock" }
}

mock_resource "aws_iam_policy" {
  defaults = { arn = "arn:aws:iam::123456789012:policy/mock" }
}

mock_resource "aws_cognito_user_pool" {
  defaults = { id = "eu-central-1_Mock12345", arn = "arn:aws:cognito-idp:eu-central-1:123456789012:userpool/eu-central-1_Mock12345" }
}

mock_resource "aws_ses_domain_identity" {
  defaults = { arn = "arn:aws:ses:eu-central-1:123456789012:identity/example.com", verification_token = "token" }
}

mock_resource "aws_ses_domain_dkim" {
  defaults = { dkim_tokens = ["one", "two", "three"] }
}

mock_resource "aws_route53_zone" {
  defaults = { zone_id = "ZMOCK", name_servers = ["ns-1.awsdns-01.org", "ns-2.awsdns-02.com"] }
}

mock_resource "aws_acm_certificate" {
  defaults = {
    arn                       = "arn:aws:acm:eu-central-1:123456789012:certificate/mock"
    domain_validation_options = [{ domain_name = "agents.example.com", resource_record_name = "_a.agents.example.com", resource_record_type = "CNAME", resource_record_value = "_b.acm-validations.aws" }]
  }
}

mock_resource "aws_vpc_endpoint" {
  defaults = { prefix_list_id = "pl-00000000" }
}

mock_resource "aws_rds_cluster" {
  defaults = {
    arn                 = "arn:aws:rds:eu-central-1:123456789012:cluster:agentplatform-dev"
    endpoint            = "agentplatform-dev.cluster-mock.eu-central-1.rds.amazonaws.com"
    cluster_resource_id = "cluster-MOCK"
  }
}

mock_resource "aws_db_instance" {
  defaults = {
    arn         = "arn:aws:rds:eu-central-1:123456789012:db:agentplatform-dev"
    address     = "agentplatform-dev.mock.eu-central-1.rds.amazonaws.com"
    resource_id = "db-MOCK"
  }
}

mock_resource "aws_secretsmanager_secret" {
  defaults = { arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mock-AbCdEf" }
}

mock_resource "aws_dynamodb_table" {
  defaults = { arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/mock" }
}

mock_resource "aws_lambda_function" {
  defaults = {
    arn        = "arn:aws:lambda:eu-central-1:123456789012:function:mocked"
    invoke_arn = "arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/arn:aws:lambda:eu-central-1:123456789012:function:mocked/invocations"
  }
}

mock_resource "aws_cloudwatch_metric_alarm" {
  defaults = { arn = "arn:aws:cloudwatch:eu-central-1:123456789012:alarm:mocked" }
}

mock_resource "aws_sqs_queue" {
  defaults = { arn = "arn:aws:sqs:eu-central-1:123456789012:mocked", url = "https://sqs.eu-central-1.amazonaws.com/123456789012/mocked" }
}

mock_resource "aws_sns_topic" {
  defaults = { arn = "arn:aws:sns:eu-central-1:123456789012:mocked" }
}

mock_resource "aws_appsync_graphql_api" {
  defaults = {
    id  = "mockedapi"
    arn = "arn:aws:appsync:eu-central-1:123456789012:apis/mockedapi"
    uris = {
      GRAPHQL  = "https://mocked.appsync-api.eu-central-1.amazonaws.com/graphql"
      REALTIME = "wss://mocked.appsync-realtime-api.eu-central-1.amazonaws.com/graphql"
    }
  }
}

mock_resource "aws_appsync_domain_name" {
  defaults = { appsync_domain_name = "d111111mocked.cloudfront.net", hosted_zone_id = "Z2FDTNDATAQYW2" }
}

mock_resource "aws_apigatewayv2_api" {
  defaults = {
    id            = "mockedhttp"
    api_endpoint  = "https://mockedhttp.execute-api.eu-central-1.amazonaws.com"
    execution_arn = "arn:aws:execute-api:eu-central-1:123456789012:mockedhttp"
  }
}

mock_resource "aws_apigatewayv2_authorizer" {
  defaults = { id = "mockedauth" }
}

mock_resource "aws_apigatewayv2_domain_name" {
  defaults = { arn = "arn:aws:apigateway:eu-central-1::/domainnames/mocked" }
}

mock_resource "aws_cloudfront_distribution" {
  defaults = { arn = "arn:aws:cloudfront::123456789012:distribution/MOCKED", domain_name = "d222222mocked.cloudfront.net", hosted_zone_id = "Z2FDTNDATAQYW2" }
}

mock_resource "aws_cloudformation_stack" {
  defaults = { outputs = {
    InterpreterId = "agentplatform_dev_sandbox-MOCKED0001"

    Endpoint   = "agentplatform-dev.proxy-mock.eu-central-1.rds.amazonaws.com"
    Arn        = "arn:aws:rds:eu-central-1:123456789012:db-proxy:prx-mock"
    MemoryId   = "agentplatform_dev_memory-MOCKED0001"
    RuntimeArn = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/mocked"
    SecretArn  = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:agentplatform-dev/database/knowledge-AbCdEf"
  } }
}

mock_resource "aws_bedrockagent_knowledge_base" {
  defaults = { id = "MOCKEDKB01", arn = "arn:aws:bedrock:eu-central-1:123456789012:knowledge-base/MOCKEDKB01" }
}

mock_resource "aws_bedrockagent_data_source" {
  defaults = { data_source_id = "MOCKEDDS01" }
}

mock_resource "aws_ecr_repository" {
  defaults = { arn = "arn:aws:ecr:eu-central-1:123456789012:repository/agentplatform-dev/agent-runtime", repository_url = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/agentplatform-dev/agent-runtime" }
}
