output "name" {
  description = "Name of the function."
  value       = aws_lambda_function.this.function_name
}

output "arn" {
  description = "ARN of the function."
  value       = aws_lambda_function.this.arn
}

output "invoke_arn" {
  description = "What an HTTP API calls it by."
  value       = aws_lambda_function.this.invoke_arn
}

output "code" {
  description = "Hash of its code."
  value       = aws_lambda_function.this.source_code_hash
}

output "settings" {
  description = "Its environment."
  value       = aws_lambda_function.this.environment[0].variables
}
