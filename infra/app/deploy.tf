# What the deployment itself calls, and waits for: `deploy before` rows before any other function changes (migrations: new code serves a database that it
# knows, and old code one that is compatible with it), `deploy after` rows once all are there (the first tenant). An error ends the deployment, with what
# the function says.

resource "aws_lambda_invocation" "before" {
  for_each = module.first

  function_name = each.value.name
  input         = jsonencode({})
  triggers      = { code = each.value.code, settings = sha256(jsonencode(each.value.settings)), database = var.data.database_resource_id } # what it makes ready depends on all three
}

resource "aws_lambda_invocation" "after" {
  for_each = { for name, row in local.rows : name => row if contains(row.on, "deploy after") }

  function_name = module.function[each.key].name
  input         = jsonencode(var.first_tenant == null ? {} : { slug = var.first_tenant.slug, name = var.first_tenant.name, ownerEmail = var.first_tenant.owner_email })
  triggers      = { code = module.function[each.key].code, database = var.data.database_resource_id }

  depends_on = [module.function, aws_lambda_permission.trigger]
}
