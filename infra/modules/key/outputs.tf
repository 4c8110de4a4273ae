output "arn" {
  description = "The key's ARN. Policies name it, not the alias: an alias may come to mean another key."
  value       = aws_kms_key.this.arn
}

output "id" {
  description = "The key's id."
  value       = aws_kms_key.this.key_id
}

output "alias" {
  description = "The alias, for people."
  value       = aws_kms_alias.this.name
}
