# What each need of schema/routes.json means here: the settings that a function gets for it, and what its role may do for it. The words are
# manifest.Needs, no more and no fewer; test/infra holds that.
#
# A statement names the one thing that it is about. A secret never passes through Terraform: a function gets its name (…_SECRET_ID) and reads it itself,
# when it starts.

locals {
  vocabulary = {
    "db" = {
      env   = { DATABASE_AUTH = "iam", DATABASE_URL = var.data.database_urls["app"] }
      allow = [{ Effect = "Allow", Action = ["rds-db:connect"], Resource = [var.data.database_connect_arns["app"]] }]
    }
    "db:reader" = {
      env   = { DATABASE_AUTH = "iam", DATABASE_READER_URL = var.data.database_urls["reader"] }
      allow = [{ Effect = "Allow", Action = ["rds-db:connect"], Resource = [var.data.database_connect_arns["reader"]] }]
    }
    "db:ledger" = {
      env   = { DATABASE_AUTH = "iam", DATABASE_LEDGER_URL = var.data.database_urls["ledger"] }
      allow = [{ Effect = "Allow", Action = ["rds-db:connect"], Resource = [var.data.database_connect_arns["ledger"]] }]
    }

    # For migrations only: the owner's password is what a deployment was given. They also make the knowledge base's role, and set its password.
    "db:owner" = {
      env = merge({ DATABASE_OWNER_SECRET_ID = var.data.database_owner.arn }, local.knowledge == null ? {} : { DATABASE_KNOWLEDGE_SECRET_ID = local.knowledge.secret.arn })
      allow = concat(local.read_secret["DATABASE_OWNER"], try(local.read_secret["DATABASE_KNOWLEDGE"], []), [
        # RDS refuses the password of a role that it counts among the members of rds_iam, and PostgreSQL 16 makes who creates a role its member.
        { Effect = "Allow", Action = ["rds-db:connect"], Resource = [var.data.database_owner.connect_arn] },
      ])
    }

    # Turns stream, and nothing else asks a model. A profile passes a request on to models in other regions: both are named.
    "model" = {
      env = {}
      allow = [{
        Effect = "Allow"
        Action = ["bedrock:InvokeModelWithResponseStream"]
        Resource = distinct(flatten([for id in var.model_ids : can(regex(local.profile, id)) ?
          ["${local.arn}:bedrock:${local.here}:inference-profile/${id}", "${local.arn}:bedrock:*::foundation-model/${regex(local.profile, id)[0]}"] :
          ["${local.arn}:bedrock:${var.region}::foundation-model/${id}"]
        ]))
      }]
    }

    # The guardrails that the deployment names, in whatever version. Rules of guardrails need nobody.
    "guardrail" = {
      env = {}
      allow = [for ids in [var.guardrail_ids] : {
        Effect   = "Allow"
        Action   = ["bedrock:ApplyGuardrail"]
        Resource = [for id in ids : "${local.arn}:bedrock:${local.here}:guardrail/${id}"]
      } if length(ids) > 0]
    }

    # AgentCore puts a hyphen and ten characters of its own behind a runtime's name. Without a runtime, turns run in the function itself.
    "runtime" = {
      env = {} # AGENT_RUNTIMES, added below: the runtime's own settings are made of this map too
      allow = [for name in [local.runtime_name] : {
        Effect   = "Allow"
        Action   = ["bedrock-agentcore:InvokeAgentRuntime"]
        Resource = ["${local.arn}:bedrock-agentcore:${local.here}:runtime/${name}-*"]
      } if var.agent_runtime]
    }

    # Sessions of the one interpreter, which has no network.
    "sandbox" = {
      env = {} # CODE_INTERPRETER_ID, added below: this map is looked at before anything is made
      allow = [for name in [local.interpreter_name] : {
        Effect   = "Allow"
        Action   = ["bedrock-agentcore:StartCodeInterpreterSession", "bedrock-agentcore:InvokeCodeInterpreter", "bedrock-agentcore:StopCodeInterpreterSession"]
        Resource = ["${local.arn}:bedrock-agentcore:${local.here}:code-interpreter-custom/${name}-*"]
      } if var.code_interpreter]
    }

    # Tenants' secrets, by category: encrypted parameters below one prefix. The names below it begin with the tenant (pkg/secret.ID). Of tool servers keys
    # and tokens, of integrations signing secrets and tokens, of users' connections the tokens that a provider gave. The signing
    # secrets of task webhooks are a part of the integrations': whoever the internet calls for them sees no others, and takes none away.
    "secret:tools" = {
      env   = { TOOL_SECRETS_PREFIX = local.parameters.tools.prefix, TOOL_SECRETS_KEY_ID = local.parameters.tools.key }
      allow = local.parameters.tools.write
    }
    "secret:integrations" = {
      env   = { INTEGRATION_SECRETS_PREFIX = local.parameters.integrations.prefix, INTEGRATION_SECRETS_KEY_ID = local.parameters.integrations.key }
      allow = local.parameters.integrations.write
    }
    "secret:integrations:read" = {
      env   = { INTEGRATION_SECRETS_PREFIX = local.parameters.integrations.prefix, INTEGRATION_SECRETS_KEY_ID = local.parameters.integrations.key }
      allow = local.parameters.integrations.read
    }
    "secret:webhooks" = {
      env   = { INTEGRATION_SECRETS_PREFIX = local.parameters.integrations.prefix, INTEGRATION_SECRETS_KEY_ID = local.parameters.integrations.key }
      allow = local.parameters.webhooks.write
    }
    "secret:webhooks:keep" = {
      env   = { INTEGRATION_SECRETS_PREFIX = local.parameters.integrations.prefix, INTEGRATION_SECRETS_KEY_ID = local.parameters.integrations.key }
      allow = local.parameters.webhooks.keep
    }
    "secret:connections" = {
      env   = { CONNECTION_SECRETS_PREFIX = local.parameters.connections.prefix, CONNECTION_SECRETS_KEY_ID = local.parameters.connections.key }
      allow = local.parameters.connections.write
    }

    # Tenants' schedules, all of one group, and what they start when they are due. The service knows no narrower resource for a list.
    "clock" = {
      env = { SCHEDULE_GROUP = local.schedules_group, SCHEDULE_TARGET_ARN = local.schedules_target, SCHEDULE_ROLE_ARN = local.role_arn[local.schedules_role], SCHEDULE_DEAD_LETTERS_ARN = local.queue_arn }
      allow = [
        {
          Effect   = "Allow"
          Action   = ["scheduler:CreateSchedule", "scheduler:UpdateSchedule", "scheduler:GetSchedule", "scheduler:DeleteSchedule"]
          Resource = ["${local.arn}:scheduler:${local.here}:schedule/${local.schedules_group}/*"]
        },
        { Effect = "Allow", Action = ["scheduler:ListSchedules"], Resource = ["*"] },
        {
          Effect    = "Allow"
          Action    = ["iam:PassRole"]
          Resource  = [local.role_arn[local.schedules_role]]
          Condition = { StringEquals = { "iam:PassedToService" = "scheduler.amazonaws.com" } }
        },
      ]
    }

    # State machines of tenants' routines. They run as the one role, whoever makes them; a definition that is only looked at has no name yet.
    "workflow:machines" = {
      env = merge(local.engine, { WORKFLOW_LOG_GROUP_ARN = "${local.arn}:logs:${local.here}:log-group:${local.routines_log}" })
      allow = [
        { Effect = "Allow", Action = ["states:CreateStateMachine", "states:DescribeStateMachine", "states:DeleteStateMachine"], Resource = ["${local.routines_machines}*"] },
        { Effect = "Allow", Action = ["states:ValidateStateMachineDefinition"], Resource = ["*"] },
        {
          Effect    = "Allow"
          Action    = ["iam:PassRole"]
          Resource  = [local.role_arn[local.routines_role]]
          Condition = { StringEquals = { "iam:PassedToService" = "states.amazonaws.com" } }
        },
      ]
    }
    # Of those, and of the platform's own.
    "workflow:runs" = {
      env = local.engine
      allow = flatten([for machines in [concat(["${local.routines_machines}*"], [for name in keys(local.machines) : "${local.arn}:states:${local.here}:stateMachine:${local.prefix}-${name}"])] : [
        { Effect = "Allow", Action = ["states:StartExecution"], Resource = machines },
        {
          Effect   = "Allow"
          Action   = ["states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"]
          Resource = [for machine in machines : "${replace(machine, ":stateMachine:", ":execution:")}:*"]
        },
      ]])
    }
    "workflow:runs:read" = {
      env = local.engine
      allow = [{
        Effect   = "Allow"
        Action   = ["states:DescribeExecution", "states:GetExecutionHistory"]
        Resource = ["${replace(local.routines_machines, ":stateMachine:", ":execution:")}*:*"]
      }]
    }
    # A token says which task it is of; the service takes nothing narrower.
    "workflow:tasks" = {
      env   = local.engine
      allow = [{ Effect = "Allow", Action = ["states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"], Resource = ["*"] }]
    }

    # The internet, by the network's own way there. The function itself refuses what is not on it (pkg/egress).
    "egress" = {
      env   = {}
      allow = []
    }

    # From the one address, by the identity that it belongs to. The recipients are looked at by whoever asks (pkg/tool).
    "mail" = {
      env = {}
      allow = [for from in [var.mail_from] : {
        Effect    = "Allow"
        Action    = ["ses:SendEmail", "ses:SendRawEmail"] # of a whole message, SES asks for both
        Resource  = [var.foundation.email_identity_arn]
        Condition = { StringEquals = { "ses:FromAddress" = from } }
      } if from != "" && var.foundation.email_identity_arn != ""]
    }
    "mail-from" = {
      env   = { MAIL_FROM = var.mail_from }
      allow = []
    }

    # Where mail is received, and what has come.
    "mail-in" = {
      env   = { MAIL_DOMAIN = var.foundation.mail_domain }
      allow = []
    }
    "object:mail:read" = {
      env = { MAIL_BUCKET = var.data.buckets.mail.name }
      allow = concat(local.use_key["mail"].read, [
        { Effect = "Allow", Action = ["s3:GetObject"], Resource = ["${var.data.buckets.mail.arn}/in/*"] },
      ])
    }

    # Devices of the platform applications that an operator made, with the credentials of Apple and Google in them, and no topic and no phone.
    "push:send" = {
      env   = { PUSH_APPLICATIONS = local.push_applications }
      allow = [for endpoints in [local.push_endpoints] : { Effect = "Allow", Action = ["sns:Publish"], Resource = endpoints } if length(endpoints) > 0]
    }
    "push:devices" = {
      env = { PUSH_APPLICATIONS = local.push_applications }
      allow = flatten([for applications in [values(var.push_applications)] : [
        { Effect = "Allow", Action = ["sns:CreatePlatformEndpoint"], Resource = applications },
        { Effect = "Allow", Action = ["sns:SetEndpointAttributes", "sns:DeleteEndpoint"], Resource = local.push_endpoints },
      ] if length(applications) > 0])
    }

    # The mutations that only the platform may call, and no other field: whoever can publish cannot read through the API.
    "publish" = {
      env = { APPSYNC_URL = local.graphql_url }
      allow = [{
        Effect   = "Allow"
        Action   = ["appsync:GraphQL"]
        Resource = [for field in local.publishing : "${local.graphql_arn}/types/Mutation/fields/${field}"]
      }]
    }

    # The functions behind the schema's fields, as the GraphQL API calls them.
    "fields" = {
      env   = { FUNCTION_PREFIX = "${local.prefix}-" }
      allow = local.call_fields
    }

    "operators" = {
      env   = { SERVICE_PLATFORM_OPERATOR_EMAILS = join(",", var.operator_emails) }
      allow = []
    }
    "default-model" = {
      env   = { DEFAULT_MODEL_ID = var.default_model_id }
      allow = []
    }

    "page-key" = {
      env   = { PAGE_TOKEN_KEY_SECRET_ID = var.data.secrets["PAGE_TOKEN_KEY"].name }
      allow = local.read_secret["PAGE_TOKEN_KEY"]
    }
    "audit" = {
      env   = { AUDIT_EMISSION_KEY_SECRET_ID = var.data.secrets["AUDIT_EMISSION_KEY"].name }
      allow = local.read_secret["AUDIT_EMISSION_KEY"]
    }
    "api-secret" = {
      env   = { API_AUTH_SECRET_SECRET_ID = var.data.secrets["API_AUTH_SECRET"].name }
      allow = local.read_secret["API_AUTH_SECRET"]
    }

    # Only digests, and only by the one algorithm: a signature of this key is always one of a checkpoint, a beacon or a manifest.
    "sign" = {
      env = { ANCHOR_SIGNING_KEY_ID = var.foundation.anchor_signing_key_arn }
      allow = [
        {
          Effect    = "Allow"
          Action    = ["kms:Sign"]
          Resource  = [var.foundation.anchor_signing_key_arn]
          Condition = { StringEquals = { "kms:SigningAlgorithm" = "ECDSA_SHA_256", "kms:MessageType" = "DIGEST" } }
        },
        { Effect = "Allow", Action = ["kms:GetPublicKey"], Resource = [var.foundation.anchor_signing_key_arn] },
      ]
    }
    "sign:public" = {
      env   = { ANCHOR_SIGNING_KEY_ID = var.foundation.anchor_signing_key_arn }
      allow = [{ Effect = "Allow", Action = ["kms:GetPublicKey"], Resource = [var.foundation.anchor_signing_key_arn] }]
    }
    "anchoring" = {
      env = merge({
        ANCHOR_ORIGIN    = local.anchor_origin
        ANCHOR_INTERVAL  = "${var.anchor_interval_minutes}m"
        ANCHOR_RETENTION = "${var.anchor_retention_days * 24}h"
      }, var.anchor_witness == null ? {} : { ANCHOR_WITNESS_URL = var.anchor_witness.url, ANCHOR_WITNESS_KEY = var.anchor_witness.key })
      allow = []
    }

    # Who adds to the write-once bucket also reads what is there, and repeats a lock that a crash has left out. Nobody deletes.
    "object:audit:append" = {
      env = { ANCHOR_BUCKET = var.data.buckets.audit.name }
      allow = concat(local.read_audit, local.use_key["audit"].write, [
        { Effect = "Allow", Action = ["s3:PutObject", "s3:PutObjectRetention"], Resource = local.audit_objects },
      ])
    }
    "object:audit:read" = {
      env   = { ANCHOR_BUCKET = var.data.buckets.audit.name }
      allow = concat(local.read_audit, local.use_key["audit"].read)
    }

    # A file is written in parts by whoever works on it, and read again by who takes its work up. Links are signed by the function's role.
    "object:exports:write" = {
      env = { EXPORTS_BUCKET = var.data.buckets.exports.name }
      allow = concat(local.use_key["exports"].write, [
        { Effect = "Allow", Action = ["s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"], Resource = local.exports_objects },
        { Effect = "Allow", Action = ["s3:ListBucket"], Resource = [var.data.buckets.exports.arn], Condition = { StringLike = { "s3:prefix" = ["exports/*"] } } },
      ])
    }
    "object:exports:read" = {
      env = { EXPORTS_BUCKET = var.data.buckets.exports.name }
      allow = concat(local.use_key["exports"].read, [
        { Effect = "Allow", Action = ["s3:GetObject"], Resource = ["${var.data.buckets.exports.arn}/exports/*"] },
      ])
    }

    "identity" = {
      env = { USER_POOL_ID = var.foundation.user_pool.id }
      allow = [{
        Effect = "Allow"
        Action = ["cognito-idp:AdminCreateUser", "cognito-idp:AdminGetUser", "cognito-idp:AdminEnableUser", "cognito-idp:AdminDisableUser", "cognito-idp:AdminDeleteUser", "cognito-idp:AdminUserGlobalSignOut"]
        # Nobody is made a member of anything here: groups, passwords and attributes of existing users cannot be changed.
        Resource = [var.foundation.user_pool.arn]
      }]
    }
  }

  # `invoke:` and the name of a function: exactly that one.
  grants = merge(local.vocabulary, { for name, row in local.rows : "invoke:${name}" => {
    env   = { FUNCTION_PREFIX = "${local.prefix}-" }
    allow = [{ Effect = "Allow", Action = ["lambda:InvokeFunction"], Resource = [row.arn] }]
  } })

  env = { for name, needs in local.needs : name => merge(concat(
    [local.telemetry],
    [for need in needs : try(local.grants[need].env, {})],
    [for need in needs : { AGENT_RUNTIMES = local.with_runtime ? "default=${local.runtime_arn}" : "" } if need == "runtime"],
    [for need in needs : { CODE_INTERPRETER_ID = local.interpreter_id } if need == "sandbox"],
  )...) }

  # What every function and the runtime are told, whatever they need.
  telemetry = merge({ METRICS_NAMESPACE = local.namespace }, var.log_error_texts ? { LOG_ERROR_TEXTS = "true" } : {})

  # ---- What several needs are made of

  # Where the state machines are: their account by the role that tenants' run as, and how their names begin.
  engine = { WORKFLOW_ROLE_ARN = local.role_arn[local.routines_role], FUNCTION_PREFIX = "${local.prefix}-" }

  # The functions behind the schema's fields are told by a tag: their names together are longer than IAM takes of a role.
  field_tag = { Answers = "graphql" }
  call_fields = [{
    Effect    = "Allow"
    Action    = ["lambda:InvokeFunction"]
    Resource  = ["${local.arn}:lambda:${local.here}:function:${local.prefix}-*"]
    Condition = { StringEquals = { for name, value in local.field_tag : "aws:ResourceTag/${name}" => value } }
  }]

  profile = "^(?:us-gov|us|eu|apac|jp|au|ca|sa|global)\\.(.+)$" # the id of an inference profile, and in it that of its model

  anchor_origin = coalesce(var.anchor_origin, "${local.prefix}-${var.account_id}-anchors")

  # The audit log's three kinds of objects (pkg/audit/anchor names them); what else may be in the bucket is not this tier's.
  audit_objects   = [for kind in ["anchors", "heads", "events"] : "${var.data.buckets.audit.arn}/${kind}/*"]
  exports_objects = [for kind in ["exports", "payloads"] : "${var.data.buckets.exports.arn}/${kind}/*"]

  # Listing makes a missing object a missing object: without it, S3 answers that access is denied.
  read_audit = [
    { Effect = "Allow", Action = ["s3:GetObject", "s3:GetObjectRetention"], Resource = local.audit_objects },
    { Effect = "Allow", Action = ["s3:ListBucket"], Resource = [var.data.buckets.audit.arn] },
  ]

  push_applications = join(",", [for platform, arn in var.push_applications : "${platform}=${arn}"])
  push_endpoints    = [for arn in values(var.push_applications) : "${replace(arn, ":app/", ":endpoint/")}/*"]

  # Parameters of one category, and its key as Parameter Store uses it for them. The key of connections was there before them.
  # Webhooks are a part of integrations.
  parameters = { for name, of in {
    tools        = { category = "tools", key = "tools", below = "*" }
    integrations = { category = "integrations", key = "integrations", below = "*" }
    webhooks     = { category = "integrations", key = "integrations", below = "*/webhooks/*" }
    connections  = { category = "connections", key = "oauth", below = "*" }
    } : name => merge(
    { prefix = "/${local.prefix}/${of.category}", key = var.foundation.key_arns[of.key] },
    { for how, actions in {
      keep  = { ssm = ["ssm:GetParameter", "ssm:PutParameter"], kms = ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"] }
      read  = { ssm = ["ssm:GetParameter"], kms = ["kms:Decrypt"] }
      write = { ssm = ["ssm:GetParameter", "ssm:PutParameter", "ssm:DeleteParameter"], kms = ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"] }
      } : how => flatten([for parameters in ["${local.arn}:ssm:${local.here}:parameter/${local.prefix}/${of.category}/${of.below}"] : [
        { Effect = "Allow", Action = actions.ssm, Resource = [parameters] },
        {
          Effect   = "Allow"
          Action   = actions.kms
          Resource = [var.foundation.key_arns[of.key]]
          Condition = {
            StringEquals = { "kms:ViaService" = "ssm.${var.region}.${local.dns_suffix}" }
            StringLike   = { "kms:EncryptionContext:PARAMETER_ARN" = parameters }
          }
        },
    ]]) },
  ) }

  # A bucket's own key, only as S3 uses it and only for that bucket.
  use_key = { for kind, bucket in var.data.buckets : kind => { for how, actions in { read = ["kms:Decrypt"], write = ["kms:Decrypt", "kms:GenerateDataKey"] } : how => [
    for key in [bucket.key_arn] : {
      Effect   = "Allow"
      Action   = actions
      Resource = [key]
      Condition = {
        StringEquals = { "kms:ViaService" = "s3.${var.region}.${local.dns_suffix}" }
        StringLike   = { "kms:EncryptionContext:aws:s3:arn" = [bucket.arn, "${bucket.arn}/*"] }
      }
    }
  ] } }

  read_secret = { for purpose, secret in merge(var.data.secrets, { for purpose, secret in { DATABASE_OWNER = var.data.database_owner, DATABASE_KNOWLEDGE = try(local.knowledge.secret, null) } : purpose => { name = secret.name, arn = secret.arn, key_arn = secret.key_arn } if secret != null }) : purpose => [
    { Effect = "Allow", Action = ["secretsmanager:GetSecretValue"], Resource = [secret.arn] },
    {
      Effect   = "Allow"
      Action   = ["kms:Decrypt"]
      Resource = [secret.key_arn]
      Condition = {
        StringEquals = { "kms:ViaService" = "secretsmanager.${var.region}.${local.dns_suffix}" }
        ArnLike      = { "kms:EncryptionContext:SecretARN" = secret.arn } # the service puts six characters of its own behind a secret's name
      }
    },
  ] }

  dns_suffix = local.partition == "aws-cn" ? "amazonaws.com.cn" : "amazonaws.com"
}
