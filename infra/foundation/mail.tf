# The domain that mail comes from. Receivers believe it by DKIM (three keys that SES rotates), SPF (the bounces' domain) and DMARC. And a domain below
# it whose mail is received: SES counts a domain's as verified with it. What is done with that mail is the app tier's (infra/app/receiving.tf).

locals {
  mail = var.email_domain != ""
  # Whether our zone holds the mail domain's records.
  mail_here = local.mail && local.named && (var.email_domain == var.domain_name || endswith(var.email_domain, ".${var.domain_name}"))
  bounces   = "bounce.${var.email_domain}"

  email_records = !local.mail ? [] : concat(
    [
      { name = "_amazonses.${var.email_domain}", type = "TXT", value = aws_ses_domain_identity.this[0].verification_token },
      { name = local.bounces, type = "MX", value = "10 feedback-smtp.${var.region}.amazonses.com" },
      { name = local.bounces, type = "TXT", value = "v=spf1 include:amazonses.com -all" },
      { name = "_dmarc.${var.email_domain}", type = "TXT", value = "v=DMARC1; p=quarantine; adkim=r; aspf=r" },
    ],
    [for i in range(3) : {
      name  = "${aws_ses_domain_dkim.this[0].dkim_tokens[i]}._domainkey.${var.email_domain}"
      type  = "CNAME"
      value = "${aws_ses_domain_dkim.this[0].dkim_tokens[i]}.dkim.amazonses.com"
    }],
    [for domain in [var.mail_domain] : { name = domain, type = "MX", value = "10 inbound-smtp.${var.region}.amazonaws.com" } if domain != ""],
  )
}

resource "aws_ses_domain_identity" "this" {
  count  = local.mail ? 1 : 0
  domain = var.email_domain
}

# One variable cannot look at another's value in its own rule before Terraform 1.9.
resource "terraform_data" "mail" {
  lifecycle {
    precondition {
      condition     = var.mail_domain == "" || local.mail && endswith(var.mail_domain, ".${var.email_domain}") && var.mail_domain != local.bounces
      error_message = "mail_domain ${var.mail_domain} must be a domain below email_domain, whose own mail goes on to whom it goes now, and not ${local.bounces}: for example in.${local.mail ? var.email_domain : "example.com"}."
    }
  }
}

resource "aws_ses_domain_dkim" "this" {
  count  = local.mail ? 1 : 0
  domain = aws_ses_domain_identity.this[0].domain
}

resource "aws_ses_domain_mail_from" "this" {
  count = local.mail ? 1 : 0

  domain           = aws_ses_domain_identity.this[0].domain
  mail_from_domain = local.bounces
}

resource "aws_route53_record" "mail" {
  count = local.mail_here ? length(local.email_records) : 0

  zone_id = local.zone_id
  name    = local.email_records[count.index].name
  type    = local.email_records[count.index].type
  records = [local.email_records[count.index].value]
  ttl     = 300
}
