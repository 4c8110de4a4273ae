# The console's files, from their bucket over a CDN.

locals {
  # What a page of the console may load and call. Fonts, styles and scripts are its own.
  content_security_policy = join("; ", [
    "default-src 'self'",
    "img-src 'self' data: blob:",
    "style-src 'self' 'unsafe-inline'",
    "object-src 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "form-action 'self'",
    "connect-src 'self' ${join(" ", [local.api_url, local.appsync_url, local.realtime_url, var.foundation.user_pool.sign_in_url, regex("^https://[^/]+", var.foundation.user_pool.issuer)])}",
  ])
}

resource "aws_cloudfront_origin_access_control" "console" {
  name                              = "${local.prefix}-console"
  description                       = "The distribution signs its reads of the bucket"
  origin_access_control_origin_type = "s3"
  signing_behavior                  = "always"
  signing_protocol                  = "sigv4"
}

resource "aws_cloudfront_response_headers_policy" "console" {
  name    = "${local.prefix}-console"
  comment = "What browsers should not allow pages of the console"

  security_headers_config {
    content_security_policy {
      content_security_policy = local.content_security_policy
      override                = true
    }
    content_type_options {
      override = true
    }
    frame_options {
      frame_option = "DENY"
      override     = true
    }
    referrer_policy {
      referrer_policy = "same-origin"
      override        = true
    }
    strict_transport_security {
      access_control_max_age_sec = 31536000
      include_subdomains         = true
      override                   = true
    }
  }
}

resource "aws_cloudfront_distribution" "console" {
  comment             = "${local.prefix}: the console"
  enabled             = true
  is_ipv6_enabled     = true
  http_version        = "http2and3"
  price_class         = var.cdn_price_class
  default_root_object = "index.html"
  aliases             = local.dns == null ? [] : [local.dns.name]

  origin {
    origin_id                = "assets"
    domain_name              = "${var.data.buckets.assets.name}.s3.${var.region}.${local.dns_suffix}"
    origin_access_control_id = aws_cloudfront_origin_access_control.console.id
  }

  default_cache_behavior {
    target_origin_id           = "assets"
    viewer_protocol_policy     = "redirect-to-https"
    allowed_methods            = ["GET", "HEAD", "OPTIONS"]
    cached_methods             = ["GET", "HEAD"]
    compress                   = true
    cache_policy_id            = "658327ea-f89d-4fab-a63d-7e88639e58f6" # AWS's own CachingOptimized; its id is the same everywhere
    response_headers_policy_id = aws_cloudfront_response_headers_policy.console.id
  }

  # The console finds its way by the path: what is no file is a page of it. Who may not list a bucket is told 403 of what is not there.
  dynamic "custom_error_response" {
    for_each = [403, 404]
    content {
      error_code            = custom_error_response.value
      response_code         = 200
      response_page_path    = "/index.html"
      error_caching_min_ttl = 10
    }
  }

  restrictions {
    geo_restriction {
      restriction_type = "none"
    }
  }

  viewer_certificate {
    cloudfront_default_certificate = local.dns == null
    acm_certificate_arn            = local.dns == null ? null : local.dns.cdn_certificate_arn
    ssl_support_method             = local.dns == null ? null : "sni-only"
    minimum_protocol_version       = local.dns == null ? "TLSv1" : "TLSv1.2_2021" # CloudFront's own certificate allows no other choice
  }
}
