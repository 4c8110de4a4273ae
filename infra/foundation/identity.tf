# The identity pool: who somebody is. Which tenant somebody belongs to is in the database, and gets into the tokens by the pre-token trigger.

locals {
  trigger = { for name in ["pre-token", "post-authentication"] : name => "${local.arn.lambda}:function:${local.function_prefix}${name}" }
  plus    = var.user_pool_tier == "PLUS"
}

resource "aws_cognito_user_pool" "this" {
  name                = local.prefix
  user_pool_tier      = var.user_pool_tier # not LITE: it puts no claims into access tokens
  deletion_protection = var.deletion_protection ? "ACTIVE" : "INACTIVE"
  mfa_configuration   = var.mfa

  # Somebody signs in by e-mail address, and there is one account for it however it is written.
  username_attributes      = ["email"]
  auto_verified_attributes = ["email"]

  username_configuration {
    case_sensitive = false
  }

  # A verified address decides about the tenant, so a new one counts when it is verified and not before.
  user_attribute_update_settings {
    attributes_require_verification_before_update = ["email"]
  }

  # In this pool a user that exists was invited.
  admin_create_user_config {
    allow_admin_create_user_only = true

    invite_message_template {
      email_subject = "Your invitation"
      email_message = "You are invited. Sign in as {username} with the temporary password {####} within 7 days."
      sms_message   = "Sign in as {username} with the temporary password {####} within 7 days." # asked for by the API, never sent
    }
  }

  password_policy {
    minimum_length                   = var.password_min_length
    require_lowercase                = true
    require_uppercase                = true
    require_numbers                  = true
    require_symbols                  = true
    temporary_password_validity_days = 7
  }

  account_recovery_setting {
    recovery_mechanism {
      name     = "verified_email"
      priority = 1
    }
  }

  dynamic "software_token_mfa_configuration" {
    for_each = var.mfa == "OFF" ? [] : [true]

    content {
      enabled = true
    }
  }

  dynamic "user_pool_add_ons" {
    for_each = local.plus ? [var.threat_protection] : []

    content {
      advanced_security_mode = user_pool_add_ons.value
    }
  }

  dynamic "email_configuration" {
    for_each = var.invitations_from == "" ? [] : [var.invitations_from]

    content {
      email_sending_account = "DEVELOPER"
      from_email_address    = email_configuration.value
      source_arn            = aws_ses_domain_identity.this[0].arn
    }
  }

  # The functions come with the app tier, so their ARNs are made from their names here, and the permission to call them is given there, where they are:
  # an aws_lambda_permission for cognito-idp.amazonaws.com with this pool's ARN as source_arn. Until then nobody can sign in.
  dynamic "lambda_config" {
    for_each = var.sign_in_triggers ? [true] : []

    content {
      post_authentication = local.trigger["post-authentication"]

      # Version 2 puts the claims into access tokens too.
      pre_token_generation_config {
        lambda_arn     = local.trigger["pre-token"]
        lambda_version = "V2_0"
      }
    }
  }
}

resource "aws_cognito_user_pool_domain" "this" {
  domain       = var.sign_in_domain != "" ? var.sign_in_domain : "${local.prefix}-${var.account_id}"
  user_pool_id = aws_cognito_user_pool.this.id
}

# Console, command line and scripts. It has no secret, for none of them could keep one: the code flow is with PKCE.
resource "aws_cognito_user_pool_client" "this" {
  name         = "${local.prefix}-client"
  user_pool_id = aws_cognito_user_pool.this.id

  generate_secret                               = false
  enable_token_revocation                       = true
  prevent_user_existence_errors                 = "ENABLED"
  enable_propagate_additional_user_context_data = false

  explicit_auth_flows = ["ALLOW_REFRESH_TOKEN_AUTH", "ALLOW_USER_PASSWORD_AUTH", "ALLOW_USER_SRP_AUTH"]

  supported_identity_providers         = ["COGNITO"]
  allowed_oauth_flows_user_pool_client = true
  allowed_oauth_flows                  = ["code"]
  allowed_oauth_scopes                 = ["aws.cognito.signin.user.admin", "email", "openid", "profile"]
  callback_urls                        = var.callback_urls
  logout_urls                          = var.logout_urls

  # Nobody changes the address by which the tenant is found; inviting does.
  read_attributes  = ["email", "email_verified", "name"]
  write_attributes = ["name"]

  access_token_validity  = 1
  id_token_validity      = 1
  refresh_token_validity = 30

  token_validity_units {
    access_token  = "hours"
    id_token      = "hours"
    refresh_token = "days"
  }
}
