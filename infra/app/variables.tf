# ---- The deployment, the same in all tiers

variable "name" {
  description = "What everything of the platform is called, before the stage."
  type        = string
  default     = "agentplatform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{1,15}$", var.name)) && !can(regex("aws|amazon|cognito", var.name))
    error_message = "name has 2 to 16 lower-case letters and digits and begins with a letter; a hyphen would let the names of two deployments begin alike, and aws, amazon and cognito are words that AWS keeps for itself."
  }
}

variable "stage" {
  description = "Deployment stage, such as dev or prod. Stages in one account share nothing."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{0,15}$", var.stage)) && !can(regex("aws|amazon|cognito", var.stage))
    error_message = "stage has 1 to 16 lower-case letters and digits and begins with a letter, for example dev; a hyphen would let the names of two stages begin alike, and aws, amazon and cognito are words that AWS keeps for itself."
  }
}

variable "region" {
  description = "AWS region, such as eu-central-1."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region is an AWS region's code, for example eu-central-1."
  }
}

variable "account_id" {
  description = "The AWS account to deploy into. With credentials of another account nothing is done."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "account_id is the 12 digits of the AWS account, in quotes if it begins with 0 (aws sts get-caller-identity shows it)."
  }
}

variable "tags" {
  description = "Tags on everything, beside Platform, Stage and Tier."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for k in keys(var.tags) : length(k) <= 128 && !startswith(lower(k), "aws:") && !contains(["Platform", "Stage", "Tier"], k)])
    error_message = "tags: a key has at most 128 characters, does not begin with aws:, and Platform, Stage and Tier are set already."
  }
}

# ---- What the other tiers made

variable "foundation" {
  description = "The output foundation of the tier foundation: TF_VAR_foundation=\"$(terraform -chdir=infra/foundation output -json foundation)\"."
  type = object({
    prefix                      = string
    region                      = string
    account_id                  = string
    private_subnet_ids          = list(string)
    functions_security_group_id = string
    runtime_security_group_id   = string
    key_arns                    = map(string)
    anchor_signing_key_arn      = string
    email_identity_arn          = optional(string, "")
    mail_domain                 = optional(string, "")
    user_pool = object({
      id          = string
      arn         = string
      issuer      = string
      client_id   = string
      sign_in_url = string
    })
    dns = optional(object({
      name                = string
      zone_id             = string
      certificate_arn     = string
      cdn_certificate_arn = string
    }))
  })

  validation {
    condition     = length(setsubtract(["logs", "tools", "integrations", "oauth"], keys(var.foundation.key_arns))) == 0
    error_message = "foundation has not all of the keys logs, tools, integrations and oauth: apply the tier foundation of this version first."
  }
  validation {
    condition     = length(var.foundation.private_subnet_ids) >= 2
    error_message = "foundation has less than two subnets for functions, which run in two zones."
  }
}

variable "data" {
  description = "The output data of the tier data: TF_VAR_data=\"$(terraform -chdir=infra/data output -json data)\"."
  type = object({
    database_urls         = map(string)
    database_connect_arns = map(string)
    database_resource_id  = string
    database_owner        = object({ name = string, arn = string, key_arn = string, connect_arn = string })
    knowledge = optional(object({
      cluster_arn   = string
      database_name = string
      secret        = object({ name = string, arn = string, key_arn = string })
    }))
    buckets                = map(object({ name = string, arn = string, key_arn = string }))
    secrets                = map(object({ name = string, arn = string, key_arn = string }))
    runtime_repository_url = string
  })

  validation {
    condition     = length(setsubtract(["app", "ledger", "reader"], keys(var.data.database_urls))) == 0 && length(setsubtract(["audit", "exports", "mail", "assets", "functions", "knowledge"], keys(var.data.buckets))) == 0
    error_message = "data lacks a database role (app, ledger, reader) or a bucket (audit, exports, mail, assets, functions, knowledge): apply the tier data of this version first."
  }
  validation {
    condition     = length(setsubtract(["PAGE_TOKEN_KEY", "AUDIT_EMISSION_KEY", "API_AUTH_SECRET"], keys(var.data.secrets))) == 0
    error_message = "data lacks a secret (PAGE_TOKEN_KEY, AUDIT_EMISSION_KEY, API_AUTH_SECRET): apply the tier data of this version first."
  }
}

# ---- Optional settings

variable "dist" {
  description = "Folder with a zip for each function, as `make build` makes them. Null: dist at the root of the checkout."
  type        = string
  default     = null

  validation {
    condition     = var.dist == null || can(regex("[^/]$", var.dist))
    error_message = "dist is a folder, without a slash at its end."
  }
}

variable "operator_emails" {
  description = "Platform operators, by verified e-mail address: they make tenants and read the audit log. Empty: nobody does."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for email in var.operator_emails : can(regex("^[^\\s,@]+@[^\\s,@]+$", email))])
    error_message = "operator_emails must be a list of e-mail addresses, one address an element."
  }
}

variable "first_tenant" {
  description = "The tenant that the first deployment makes, and its owner, who is invited by e-mail. Null: none; a platform operator makes tenants."
  type        = object({ slug = string, name = string, owner_email = string })
  default     = null

  validation {
    condition     = var.first_tenant == null || can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.first_tenant.slug)) && can(regex("^[^\\s,@]+@[^\\s,@]+$", var.first_tenant.owner_email)) && try(var.first_tenant.name, "") != ""
    error_message = "first_tenant has a slug of lower-case letters, digits and hyphens, a name and the owner's e-mail address, for example { slug = \"acme\", name = \"Acme\", owner_email = \"ann@acme.example\" }."
  }
}

variable "model_ids" {
  description = "Bedrock models and inference profiles that agents' templates may name: ids, or ids that end in * for all of a family's. Nothing else can be invoked."
  type        = list(string)
  default     = ["anthropic.claude-*", "us.anthropic.claude-*", "eu.anthropic.claude-*", "apac.anthropic.claude-*", "jp.anthropic.claude-*", "au.anthropic.claude-*", "global.anthropic.claude-*"]

  validation {
    condition     = length(var.model_ids) > 0 && alltrue([for id in var.model_ids : can(regex("^([a-z-]+\\.)?[a-z0-9]+\\.[a-z0-9.:-]+\\*?$", id))])
    error_message = "model_ids must be ids of Bedrock models or inference profiles, for example anthropic.claude-sonnet-4-5-20250929-v1:0 or us.anthropic.claude-*; a * may stand at the end only, behind a provider and the beginning of a name."
  }
}

variable "guardrail_ids" {
  description = "Guardrails of Amazon Bedrock, in this account and region, by which tenants' guardrails of kind BEDROCK may check: ids. Any other one is refused."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.guardrail_ids : can(regex("^[a-z0-9]{1,64}$", id))])
    error_message = "guardrail_ids must be ids of guardrails of Amazon Bedrock, for example gr1a2b3c4d5e: lower-case letters and digits, neither a name nor an ARN."
  }
}

variable "mail_from" {
  description = "Address at the foundation's email_domain that agents' mails come from, once SES has verified the domain and the account is out of SES's sandbox. Empty: agents send no mail."
  type        = string
  default     = ""

  validation {
    condition     = var.mail_from == "" || can(regex("^[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}$", var.mail_from))
    error_message = "mail_from is one e-mail address without a name, its domain in lower case, for example agents@example.com, or empty."
  }
}

variable "mail_rule_set" {
  description = "Name of the active rule set of SES in this account and region, if there is one, to add this deployment's rule to. Null: one is made and becomes the active one, in place of any other. Needs the foundation's mail_domain."
  type        = string
  default     = null

  validation {
    condition     = var.mail_rule_set == null || can(regex("^[A-Za-z0-9]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?$", var.mail_rule_set))
    error_message = "mail_rule_set is the name of a rule set of SES, for example default-rule-set: 1 to 64 letters, digits, dots, hyphens and underscores."
  }
}

variable "push_applications" {
  description = "ARNs of SNS platform applications, which hold the credentials of Apple and Google, by platform: apns, apns-sandbox, fcm. An operator makes them. Empty: no device is told anything."
  type        = map(string)
  default     = {}

  validation {
    condition = alltrue([for platform, arn in var.push_applications : contains(["apns", "apns-sandbox", "fcm"], platform) &&
    can(regex("^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:app/${lookup({ apns = "APNS", apns-sandbox = "APNS_SANDBOX", fcm = "GCM" }, platform, "-")}/[A-Za-z0-9_.-]+$", arn))])
    error_message = "push_applications are ARNs of platform applications by platform, for example { apns = \"arn:aws:sns:eu-central-1:123456789012:app/APNS/agents\", fcm = \"arn:aws:sns:eu-central-1:123456789012:app/GCM/agents\" }."
  }
}

variable "default_model_id" {
  description = "The model that a new tenant's agents ask; one that model_ids covers and that is enabled in the account."
  type        = string
  default     = "global.anthropic.claude-sonnet-4-5-20250929-v1:0"

  validation {
    condition     = can(regex("^([a-z-]+\\.)?[a-z0-9]+\\.[a-z0-9.:-]+$", var.default_model_id))
    error_message = "default_model_id is the id of one Bedrock model or inference profile, for example global.anthropic.claude-sonnet-4-5-20250929-v1:0."
  }
}

variable "anchor_origin" {
  description = "Name of the audit log in its checkpoints. It is signed into every anchor: never change it. Null: agentplatform-<stage>-<account_id>-anchors."
  type        = string
  default     = null

  validation {
    condition     = var.anchor_origin == null || can(regex("^[^\\s+{][^\\s+]{0,254}$", var.anchor_origin))
    error_message = "anchor_origin must be 1 to 255 characters without spaces and plus signs, with no brace at its start: C2SP signed notes allow no other name."
  }
}

variable "anchor_interval_minutes" {
  description = "How often the audit log is anchored. Windows begin at full hours, so it must divide one."
  type        = number
  default     = 15

  validation {
    condition     = contains([1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60], var.anchor_interval_minutes)
    error_message = "anchor_interval_minutes must divide an hour: 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30 or 60."
  }
}

variable "anchor_retention_days" {
  description = "How long an object of the audit bucket is locked. Nobody can shorten it, so what is written stays, and is paid for, that long."
  type        = number
  default     = 400

  validation {
    condition     = var.anchor_retention_days >= 1 && var.anchor_retention_days <= 36500 && floor(var.anchor_retention_days) == var.anchor_retention_days
    error_message = "anchor_retention_days must be a whole number of days, 1 to 36500; audits ask for 365 or more."
  }
}

variable "anchor_witness" {
  description = "A C2SP tlog-witness that cosigns the anchors: url, and key, its verifier key. Null: none."
  type        = object({ url = string, key = string })
  default     = null

  validation {
    condition     = var.anchor_witness == null || can(regex("^https://", var.anchor_witness.url)) && can(regex("^[^+]+\\+[0-9a-f]{8}\\+", var.anchor_witness.key))
    error_message = "anchor_witness needs an https:// url and a verifier key of the form name+12345678+base64."
  }
}

variable "memory_service" {
  description = "Memory by the platform itself, in its database. False: managed memory on Bedrock AgentCore, for low cost or development; it neither reflects nor shows evidence."
  type        = bool
  default     = true
}

variable "knowledge_base" {
  description = "Serve knowledge by a managed knowledge base of Bedrock, which keeps it in Aurora. False, and with rds-postgres in any case: by the platform's own search."
  type        = bool
  default     = true
}

variable "embedding_model_id" {
  description = "The Bedrock model that embeds knowledge documents; it must be enabled in the account. Another one makes another knowledge base, which has to take the documents in again."
  type        = string
  default     = "amazon.titan-embed-text-v2:0"

  validation {
    condition     = contains(["amazon.titan-embed-text-v2:0", "cohere.embed-english-v3", "cohere.embed-multilingual-v3"], var.embedding_model_id)
    error_message = "embedding_model_id is a model whose embeddings have 1,024 numbers, as the table's: amazon.titan-embed-text-v2:0, cohere.embed-english-v3 or cohere.embed-multilingual-v3."
  }
}

variable "code_interpreter" {
  description = "Run the code of models in a code interpreter without a network, on Bedrock AgentCore. False, where AgentCore is not: the tool run_code answers that this deployment has none."
  type        = bool
  default     = true
}

variable "agent_runtime" {
  description = "Run turns in the agent runtime, a container on Bedrock AgentCore. False: they run in the function dispatch-turn, in at most 15 minutes each."
  type        = bool
  default     = true
}

variable "runtime_image_tag" {
  description = "Tag of the agent runtime's image, pinned for this deployment; it must have been pushed before. Needed with agent_runtime."
  type        = string
  default     = null

  validation {
    condition     = var.runtime_image_tag == null || can(regex("^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$", var.runtime_image_tag)) && var.runtime_image_tag != "latest"
    error_message = "runtime_image_tag must be the tag of one image, for example 1.4.0, and not latest: what runs must not change without a deployment."
  }
}

variable "allowed_origins" {
  description = "Origins of web pages that may call the HTTP API. Any may by default: a token travels in a header that a page must have, never in a cookie that a browser adds."
  type        = list(string)
  default     = ["*"]

  validation {
    condition     = length(var.allowed_origins) > 0 && alltrue([for origin in var.allowed_origins : origin == "*" || can(regex("^https?://[^/*]+$", origin))])
    error_message = "allowed_origins must be origins such as https://console.example.com, without a path, or *."
  }
}

variable "api_rate_limit" {
  description = "Requests a second that the HTTP API lets through, over all callers. Beyond it and api_burst_limit it answers 429."
  type        = number
  default     = 500

  validation {
    condition     = var.api_rate_limit >= 1
    error_message = "api_rate_limit must be 1 or more requests a second."
  }
}

variable "api_burst_limit" {
  description = "Requests that the HTTP API lets through at once."
  type        = number
  default     = 1000

  validation {
    condition     = var.api_burst_limit >= 1 && floor(var.api_burst_limit) == var.api_burst_limit
    error_message = "api_burst_limit must be a whole number, 1 or more."
  }
}

variable "log_retention_days" {
  description = "How long logs are kept. What must be kept longer is in the audit log, not here."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be a number that CloudWatch Logs knows: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731 or whole years up to 3653."
  }
}

variable "log_level" {
  description = "Least level of the functions' log lines: DEBUG or INFO. Above INFO the audit log's figures would not be logged, and alarms would look at nothing."
  type        = string
  default     = "INFO"

  validation {
    condition     = contains(["DEBUG", "INFO"], var.log_level)
    error_message = "log_level must be DEBUG or INFO: alarms are made of Info lines."
  }
}

variable "log_error_texts" {
  description = "Whether the lines of tenants' work hold the texts of errors too, which may quote what people, models and tools have written. Without them a line says by what types of errors something failed."
  type        = bool
  default     = false
}

variable "otlp_endpoint" {
  description = "OpenTelemetry collector that the agent runtime sends the spans of turns to, by OTLP over HTTP: one that its subnets reach. Null: none. Functions send theirs to X-Ray."
  type        = string
  default     = null

  validation {
    condition     = var.otlp_endpoint == null || can(regex("^https?://[^/?#@\\s]+(/[^?#\\s]*)?$", var.otlp_endpoint))
    error_message = "otlp_endpoint is an address without a user, a query or a fragment, for example http://collector.internal:4318."
  }
}

variable "reserve_concurrency" {
  description = "Reserve concurrency as routes.json says. False for an account whose limit of concurrent executions is too low for it (new ones have 10); the database decides who drains, so nothing breaks."
  type        = bool
  default     = true
}

variable "alarm_emails" {
  description = "Addresses that every alarm and the budget write to; each has to confirm once. Without any, the topic has no subscriber but those you add."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for email in var.alarm_emails : can(regex("^[^\\s,@]+@[^\\s,@]+$", email))])
    error_message = "alarm_emails must be a list of e-mail addresses, one address an element."
  }
}

variable "monthly_budget_usd" {
  description = "What the account may cost a month in US dollars before somebody is told: at 80 and 100 % of it, and when 100 % is foreseen. Nothing is stopped."
  type        = number
  default     = 500

  validation {
    condition     = var.monthly_budget_usd >= 1
    error_message = "monthly_budget_usd must be 1 or more."
  }
}

variable "cdn_price_class" {
  description = "Where the console's files are cached: PriceClass_100 (North America, Europe), PriceClass_200 or PriceClass_All."
  type        = string
  default     = "PriceClass_100"

  validation {
    condition     = contains(["PriceClass_100", "PriceClass_200", "PriceClass_All"], var.cdn_price_class)
    error_message = "cdn_price_class must be PriceClass_100, PriceClass_200 or PriceClass_All."
  }
}
