output "backend" {
  description = "Settings of the other tiers' backend, for terraform init -backend-config; each adds key = \"foundation.tfstate\", \"data.tfstate\" or \"app.tfstate\"."
  value = {
    bucket         = module.bucket.name
    region         = var.region
    dynamodb_table = aws_dynamodb_table.lock.name
    kms_key_id     = module.key.arn
    encrypt        = true
  }
}
