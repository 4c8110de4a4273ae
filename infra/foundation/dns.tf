# The deployment's own domain, if it has one: its zone, and certificates for the domain and all names directly below it.

locals {
  named = var.domain_name != ""
  # Made from inputs only, so that a plan knows how many records there are.
  zone_id = !local.named ? "" : var.dns_zone_id != "" ? var.dns_zone_id : aws_route53_zone.this[0].zone_id
  # Nobody finds the records of a zone to which its parent does not delegate, and certificates would wait for ever.
  certified = local.named && (var.dns_zone_id != "" || var.dns_delegated)
}

resource "aws_route53_zone" "this" {
  count = local.named && var.dns_zone_id == "" ? 1 : 0

  name    = var.domain_name
  comment = "${local.prefix}: names of API and console"
}

# For the API and the real-time API, in their region.
resource "aws_acm_certificate" "regional" {
  count = local.certified ? 1 : 0

  domain_name               = var.domain_name
  subject_alternative_names = ["*.${var.domain_name}"]
  validation_method         = "DNS"

  tags = { Name = "${local.prefix}-regional" }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_acm_certificate" "cdn" {
  count    = local.certified ? 1 : 0
  provider = aws.cdn

  domain_name               = var.domain_name
  subject_alternative_names = ["*.${var.domain_name}"]
  validation_method         = "DNS"

  tags = { Name = "${local.prefix}-cdn" }

  lifecycle {
    create_before_destroy = true
  }
}

# One record proves the domain for both certificates, and for the wildcard: ACM asks the same of one account and domain.
resource "aws_route53_record" "certificate" {
  count = local.certified ? 1 : 0

  zone_id         = local.zone_id
  name            = tolist(aws_acm_certificate.regional[0].domain_validation_options)[0].resource_record_name
  type            = tolist(aws_acm_certificate.regional[0].domain_validation_options)[0].resource_record_type
  records         = [tolist(aws_acm_certificate.regional[0].domain_validation_options)[0].resource_record_value]
  ttl             = 300
  allow_overwrite = true # left by an earlier certificate of the domain
}

resource "aws_acm_certificate_validation" "regional" {
  count = local.certified ? 1 : 0

  certificate_arn = aws_acm_certificate.regional[0].arn

  depends_on = [aws_route53_record.certificate]
}

resource "aws_acm_certificate_validation" "cdn" {
  count    = local.certified ? 1 : 0
  provider = aws.cdn

  certificate_arn = aws_acm_certificate.cdn[0].arn

  depends_on = [aws_route53_record.certificate]
}
