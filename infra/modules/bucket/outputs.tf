output "name" {
  description = "The bucket's name."
  value       = aws_s3_bucket.this.bucket
}

output "arn" {
  description = "The bucket's ARN, known before the bucket is made."
  value       = local.arn
}

output "domain" {
  description = "The bucket's regional host name, as a CDN's origin."
  value       = aws_s3_bucket.this.bucket_regional_domain_name
}
