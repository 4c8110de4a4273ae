# Managed memory, where the platform's own memory service is off. It is kept when the toggle is turned back: what agents know of people is data.

resource "aws_cloudformation_stack" "memory" {
  count = var.memory_service ? 0 : 1

  name          = "${local.prefix}-memory"
  template_body = file("${path.module}/memory.cfn.json")
  parameters = {
    Name = replace("${local.prefix}_memory", "-", "_") # AgentCore allows no hyphen
    Days = 365
  }

  depends_on = [terraform_data.ready]
}
