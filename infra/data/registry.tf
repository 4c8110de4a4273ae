# Images of the agent runtime. A tag means one image for ever: what runs changes by a deployment, never by a push.

resource "aws_ecr_repository" "runtime" {
  name                 = "${local.prefix}/agent-runtime"
  image_tag_mutability = "IMMUTABLE"
  force_delete         = var.force_destroy_buckets

  image_scanning_configuration {
    scan_on_push = true
  }

  # The images hold no data: they are built from this code.
  encryption_configuration {
    encryption_type = "AES256"
  }
}

resource "aws_ecr_lifecycle_policy" "runtime" {
  repository = aws_ecr_repository.runtime.name

  policy = jsonencode({
    rules = [{
      rulePriority = 1
      description  = "Keep what one may roll back to"
      selection    = { tagStatus = "any", countType = "imageCountMoreThan", countNumber = 30 }
      action       = { type = "expire" }
    }]
  })
}
