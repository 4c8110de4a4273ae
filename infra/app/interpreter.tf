# Where code of models runs: an interpreter that has no network, also not this deployment's, and no role. A session of it is a machine of its own.

locals {
  interpreter_name = replace("${local.prefix}_sandbox", "-", "_") # AgentCore allows no hyphen
  interpreter_id   = var.code_interpreter ? aws_cloudformation_stack.interpreter[0].outputs["InterpreterId"] : ""
}

resource "aws_cloudformation_stack" "interpreter" {
  count = var.code_interpreter ? 1 : 0

  name          = "${local.prefix}-interpreter"
  template_body = file("${path.module}/interpreter.cfn.json")
  parameters    = { Name = local.interpreter_name }

  depends_on = [terraform_data.ready]
}
