output "vpc_id" {
  description = "The network."
  value       = aws_vpc.this.id
}

output "availability_zones" {
  description = "The zones it is in."
  value       = local.zones
}

output "private_subnet_ids" {
  description = "Subnets of functions and runtime, one a zone."
  value       = [for zone in local.zones : aws_subnet.private[zone].id]
}

output "database_subnet_ids" {
  description = "Subnets of the database, one a zone."
  value       = [for zone in local.zones : aws_subnet.database[zone].id]
}

output "functions_security_group_id" {
  description = "Security group of functions."
  value       = aws_security_group.caller["functions"].id
}

output "runtime_security_group_id" {
  description = "Security group of the agents' runtime."
  value       = aws_security_group.caller["runtime"].id
}

output "database_security_group_id" {
  description = "Security group of the database."
  value       = aws_security_group.database.id
}

output "nat_addresses" {
  description = "Addresses that calls to the internet come from, for the allow-lists of tool servers."
  value       = [for zone in local.nat_zones : aws_eip.nat[zone].public_ip]
}

output "key_arns" {
  description = "Keys by category: database, platform, emission, oauth, tools, integrations, mail, objects, audit, assets, logs."
  value       = { for category, key in module.key : category => key.arn }
}

output "anchor_signing_key_arn" {
  description = "Key that signs the audit log's anchors: ANCHOR_SIGNING_KEY_ID. Its public half: aws kms get-public-key."
  value       = module.anchor_key.arn
}

output "function_prefix" {
  description = "What comes before a manifest name in a function's name: FUNCTION_PREFIX. The identity pool's triggers are named by it."
  value       = local.function_prefix
}

output "user_pool_id" {
  description = "The identity pool: USER_POOL_ID."
  value       = aws_cognito_user_pool.this.id
}

output "user_pool_arn" {
  description = "The identity pool's ARN, source_arn of the permissions to call its triggers."
  value       = aws_cognito_user_pool.this.arn
}

output "user_pool_issuer" {
  description = "Issuer of the tokens, for the HTTP API's authorizer."
  value       = "https://cognito-idp.${var.region}.amazonaws.com/${aws_cognito_user_pool.this.id}"
}

output "user_pool_client_id" {
  description = "The one client: audience of ID tokens, client_id of access tokens."
  value       = aws_cognito_user_pool_client.this.id
}

output "sign_in_url" {
  description = "The sign-in pages, with /oauth2/authorize and /oauth2/token below it."
  value       = "https://${aws_cognito_user_pool_domain.this.domain}.auth.${var.region}.amazoncognito.com"
}

output "domain_name" {
  description = "The deployment's domain; empty if it has none."
  value       = var.domain_name
}

output "dns_zone_id" {
  description = "The zone that holds domain_name; empty without."
  value       = local.zone_id
}

output "name_servers" {
  description = "Servers that the parent domain must delegate domain_name to; empty unless the zone was made here."
  value       = local.named && var.dns_zone_id == "" ? aws_route53_zone.this[0].name_servers : []
}

output "certificate_arn" {
  description = "Certificate of domain_name and *.domain_name in the region, validated; empty without."
  value       = local.certified ? aws_acm_certificate_validation.regional[0].certificate_arn : ""
}

output "cdn_certificate_arn" {
  description = "The same for the CDN; empty without."
  value       = local.certified ? aws_acm_certificate_validation.cdn[0].certificate_arn : ""
}

output "email_identity_arn" {
  description = "SES identity that mail is sent as; empty without."
  value       = local.mail ? aws_ses_domain_identity.this[0].arn : ""
}

output "email_records" {
  description = "DNS records of email_domain and mail_domain. They are made already if domain_name's zone holds it; else whoever runs that domain adds them."
  value       = local.email_records
}

# The tiers above take this whole as one variable: TF_VAR_foundation="$(terraform output -json foundation)". They read no state of this tier.
output "foundation" {
  description = "All that the tiers data and app need of this one, as the value of their variable foundation."
  value = {
    prefix                      = local.prefix
    region                      = var.region
    account_id                  = var.account_id
    vpc_id                      = aws_vpc.this.id
    private_subnet_ids          = [for zone in local.zones : aws_subnet.private[zone].id]
    database_subnet_ids         = [for zone in local.zones : aws_subnet.database[zone].id]
    functions_security_group_id = aws_security_group.caller["functions"].id
    runtime_security_group_id   = aws_security_group.caller["runtime"].id
    database_security_group_id  = aws_security_group.database.id
    key_arns                    = { for category, key in module.key : category => key.arn }
    anchor_signing_key_arn      = module.anchor_key.arn
    function_prefix             = local.function_prefix
    email_identity_arn          = local.mail ? aws_ses_domain_identity.this[0].arn : ""
    mail_domain                 = var.mail_domain

    user_pool = {
      id          = aws_cognito_user_pool.this.id
      arn         = aws_cognito_user_pool.this.arn
      issuer      = "https://cognito-idp.${var.region}.amazonaws.com/${aws_cognito_user_pool.this.id}"
      client_id   = aws_cognito_user_pool_client.this.id
      sign_in_url = "https://${aws_cognito_user_pool_domain.this.domain}.auth.${var.region}.amazoncognito.com"
    }

    # Null without certificates: nothing is reached under a name that no certificate proves.
    dns = local.certified ? {
      name                = var.domain_name
      zone_id             = local.zone_id
      certificate_arn     = aws_acm_certificate_validation.regional[0].certificate_arn
      cdn_certificate_arn = aws_acm_certificate_validation.cdn[0].certificate_arn
    } : null
  }
}
