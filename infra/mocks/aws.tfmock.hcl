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
