# schema/routes.json, read for this tier: everything about single functions is made of it, so that adding one edits no file here.

locals {
  root = "${path.module}/../.."
  dist = coalesce(var.dist, "${local.root}/dist")

  prefix = "${var.name}-${var.stage}"

  partition = startswith(var.region, "cn-") ? "aws-cn" : startswith(var.region, "us-gov-") ? "aws-us-gov" : "aws"
  arn       = "arn:${local.partition}" # and what follows it
  here      = "${var.region}:${var.account_id}"

  rows = { for row in jsondecode(file("${local.root}/schema/routes.json")).functions : row.name => {
    package  = row.package
    on       = row.on
    auth     = row.auth
    needs    = row.needs
    timeout  = row.timeout
    memory   = row.memory
    reserved = try(row.reserved, -1) # Lambda's word for none
    batch    = try(row.batch, false)
    async    = anytrue([for on in row.on : on == "invoke" || on == "mail" || startswith(on, "schedule ") || startswith(on, "event ")]) # nobody waits for its answer
    zip      = "${local.dist}/${row.name}.zip"
    arn      = "${local.arn}:lambda:${local.here}:function:${local.prefix}-${row.name}" # known before the function is there
  } }

  # What calls what: `Mutation.sendMessage`, `POST /graphql` and `cognito:pre-token` each have one function; a schedule's key is its function's name and number; a task has one state machine.
  fields = merge([for name, row in local.rows : { for on in row.on : trimprefix(on, "graphql ") => name if startswith(on, "graphql ") }]...)
  routes = merge([for name, row in local.rows : { for on in row.on : trimprefix(on, "http ") => name if startswith(on, "http ") }]...)
  hooks  = merge([for name, row in local.rows : { for on in row.on : trimprefix(on, "trigger ") => name if startswith(on, "trigger ") }]...)
  schedules = merge([for name, row in local.rows : {
    for i, on in [for on in row.on : trimprefix(on, "schedule ") if startswith(on, "schedule ")] : i == 0 ? name : "${name}-${i + 1}" => { function = name, expression = on }
  }]...)

  tasks = merge([for name, row in local.rows : { for on in row.on : name => trimprefix(on, "state ") if startswith(on, "state ") }]...)

  # Who is told how runs of tenants' state machines end.
  told = toset([for name, row in local.rows : name if contains(row.on, "event states")])

  # Who takes mails that were received.
  taking = toset([for name, row in local.rows : name if contains(row.on, "mail")])

  resolving = toset(values(local.fields))
  routed    = toset(values(local.routes))

  needs = { for name, row in local.rows : name => sort(row.needs) }

  # Looked at before anything is made, so that a mistake is one line and not one for each resource that it spoils.
  no_zip         = [for name, row in local.rows : name if !fileexists(row.zip)]
  no_row         = [for zip in fileset(local.dist, "*.zip") : zip if !contains(keys(local.rows), trimsuffix(zip, ".zip"))]
  unknown_needs  = distinct([for need in flatten(values(local.needs)) : need if !contains(keys(local.grants), need)])
  unknown_kinds  = distinct([for on in flatten([for row in local.rows : row.on]) : on if !contains(["graphql", "http", "schedule", "invoke", "call", "trigger", "state", "event", "mail", "deploy"], split(" ", on)[0]) || startswith(on, "event ") && on != "event states"])
  no_machine     = [for name, machine in local.tasks : "${machine} (${name})" if !contains(concat(keys(local.machines), [local.routines]), machine)]
  unknown_auths  = [for name, row in local.rows : name if !contains(["user", "operator", "internal", "api-secret", "webhook-token", "signature"], row.auth)]
  unpinned_image = var.agent_runtime && var.runtime_image_tag == null
}

resource "terraform_data" "ready" {
  lifecycle {
    precondition {
      condition     = var.foundation.prefix == local.prefix && var.foundation.region == var.region && var.foundation.account_id == var.account_id
      error_message = "foundation is of ${var.foundation.prefix} in ${var.foundation.region}, account ${var.foundation.account_id}; this is ${local.prefix} in ${var.region}, account ${var.account_id}."
    }
    precondition {
      condition     = length(local.no_zip) == 0
      error_message = "No zip in ${local.dist} for ${join(", ", local.no_zip)}: run `make build`. If it still says so, schema/routes.json has a row for which there is no functions/<package>/<name>/main.go."
    }
    precondition {
      condition     = length(local.unknown_needs) == 0
      error_message = "schema/routes.json names needs that nothing is granted for: ${join(", ", local.unknown_needs)}. Say in needs.tf what each may do and which settings it takes; an invoke: names a row."
    }
    precondition {
      condition     = length(local.unknown_kinds) == 0
      error_message = "schema/routes.json has triggers that this tier does not make: ${join(", ", local.unknown_kinds)}. It knows graphql, http, schedule, invoke, call, trigger, state, event states, mail and deploy."
    }
    precondition {
      condition     = length(local.no_machine) == 0
      error_message = "schema/routes.json has tasks of state machines that are not there: ${join(", ", local.no_machine)}. The machine auto-thread is schema/workflow/auto_thread.asl.json; routine are those of tenants' routines."
    }
    precondition {
      condition     = length(local.unknown_auths) == 0
      error_message = "schema/routes.json: auth of ${join(", ", local.unknown_auths)} must be user, operator, internal, api-secret, webhook-token or signature."
    }
    precondition {
      condition     = !local.unpinned_image
      error_message = "runtime_image_tag is missing: push the agent runtime's image to ${var.data.runtime_repository_url} and name its tag, for example runtime_image_tag = \"1.4.0\"; or let turns run in a function: agent_runtime = false."
    }
    precondition {
      condition     = var.mail_from == "" || endswith(var.foundation.email_identity_arn, ":identity/${split("@", "${var.mail_from}@")[1]}")
      error_message = "mail_from ${var.mail_from} is not at the foundation's email_domain: SES sends for that domain only. Set email_domain in the tier foundation and apply it first."
    }
    precondition {
      condition     = var.mail_rule_set == null || local.receives
      error_message = "mail_rule_set is set, and the foundation has no mail_domain: no mail is received. Set mail_domain in the tier foundation and apply it first."
    }
    precondition {
      condition     = alltrue([for arn in values(var.push_applications) : startswith(arn, "${local.arn}:sns:${local.here}:app/")])
      error_message = "push_applications must be platform applications of ${var.region} in account ${var.account_id}."
    }
    precondition {
      condition     = alltrue([for name in keys(local.rows) : length("${local.prefix}-${name}") <= 64])
      error_message = "Names of functions have at most 64 characters: choose a stage with fewer than ${length(var.stage)}."
    }
    precondition {
      condition     = anytrue([for id in var.model_ids : var.default_model_id == id || endswith(id, "*") && startswith(var.default_model_id, trimsuffix(id, "*"))])
      error_message = "default_model_id ${var.default_model_id} is not among model_ids: no function could invoke it."
    }
  }
}

check "zips" {
  assert {
    condition     = length(local.no_row) == 0
    error_message = "${local.dist} holds zips of functions that schema/routes.json does not have: ${join(", ", local.no_row)}. `make build` removes them."
  }
}
