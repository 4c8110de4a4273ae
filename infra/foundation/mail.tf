# The domain that mail comes from. Receivers believe it by DKIM (three keys that SES rotates), SPF (the bounces' domain) and DMARC.

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
  )
}

resource "aws_ses_domain_identity" "this" {
  count  = local.mail ? 1 : 0
  domain = var.email_domain
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
