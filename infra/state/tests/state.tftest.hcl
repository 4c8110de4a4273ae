mock_provider "aws" {
  source = "../mocks"
}

variables {
  stage      = "dev"
  region     = "eu-central-1"
  account_id = "123456789012"
}

run "defaults" {
  assert {
    condition     = output.backend.bucket == "agentplatform-dev-state-123456789012" && output.backend.dynamodb_table == "agentplatform-dev-state-lock" && output.backend.encrypt
    error_message = "The other tiers' backend is named otherwise."
  }
  assert {
    condition     = aws_dynamodb_table.lock.hash_key == "LockID" && aws_dynamodb_table.lock.deletion_protection_enabled
    error_message = "Terraform's backend locks by LockID."
  }
}
