# One PostgreSQL, as Aurora Serverless v2 or as an RDS server; what is set is the same for both. Migrations make the extension vector, tables, policies and
# roles. Functions connect as agentplatform_app, _ledger and _reader with tokens of IAM; the owner's password is for migrations.

locals {
  aurora   = var.database_engine == "aurora-serverless"
  version  = var.database_version != null ? var.database_version : local.aurora ? "16.8" : "16.12" # Aurora: a long-term release. RDS retires its minor releases after about a year
  major    = split(".", local.version)[0]
  owner    = "platform_admin" # not agentplatform_owner: that role owns the tables, and cannot log in
  database = local.aurora ? aws_rds_cluster.this[0].cluster_identifier : aws_db_instance.this[0].identifier

  # The endpoint's host, without a port.
  host          = local.aurora ? aws_rds_cluster.this[0].endpoint : aws_db_instance.this[0].address
  resource_id   = local.aurora ? aws_rds_cluster.this[0].cluster_resource_id : aws_db_instance.this[0].resource_id
  database_arn  = local.aurora ? aws_rds_cluster.this[0].arn : aws_db_instance.this[0].arn
  final         = var.final_snapshot == null ? null : "${local.prefix}-${var.final_snapshot}"
  authority     = "rds-ca-rsa2048-g1" # whose certificates clients verify
  log_group     = local.aurora ? "/aws/rds/cluster/${local.prefix}/postgresql" : "/aws/rds/instance/${local.prefix}/postgresql"
  backup_window = "02:00-03:00"         # UTC
  work_window   = "sun:03:30-sun:04:30" # UTC, apart from the backup

  parameters = {
    # A connection without TLS is refused, also within the network.
    "rds.force_ssl"            = { value = "1", method = "immediate" }
    "ssl_min_protocol_version" = { value = "TLSv1.2", method = "immediate" }
    # The log says which statement failed, not what people wrote: values stay out of it.
    "log_parameter_max_length"          = { value = "0", method = "immediate" }
    "log_parameter_max_length_on_error" = { value = "0", method = "immediate" }
    # What is slow shows in the log, as a statement with placeholders.
    "log_min_duration_statement" = { value = "1000", method = "immediate" }
    "password_encryption"        = { value = "scram-sha-256", method = "immediate" }
  }
}

resource "aws_db_subnet_group" "this" {
  name        = local.prefix
  description = "Subnets without a way out"
  subnet_ids  = var.foundation.database_subnet_ids
}

# Made here, before the service would: encrypted, and not kept for ever.
resource "aws_cloudwatch_log_group" "database" {
  name              = local.log_group
  retention_in_days = var.log_days
  kms_key_id        = local.key["logs"]
}

# ---- Aurora

resource "aws_rds_cluster_parameter_group" "this" {
  count = local.aurora ? 1 : 0

  name_prefix = "${local.prefix}-${local.major}-"
  family      = "aurora-postgresql${local.major}"
  description = "${local.prefix}: TLS only, no values in the log"

  dynamic "parameter" {
    for_each = local.parameters

    content {
      name         = parameter.key
      value        = parameter.value.value
      apply_method = parameter.value.method
    }
  }

  # A new major version needs a new group before the old one can go.
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_rds_cluster" "this" {
  count = local.aurora ? 1 : 0

  cluster_identifier = local.prefix
  engine             = "aurora-postgresql"
  engine_mode        = "provisioned" # Serverless v2 is a class of instances
  engine_version     = local.version
  database_name      = var.database_name

  master_username                     = local.owner
  master_password                     = var.db_password
  iam_database_authentication_enabled = true
  enable_http_endpoint                = true # the Data API, by which Bedrock's knowledge base comes: with IAM and a secret, not through the network

  db_subnet_group_name            = aws_db_subnet_group.this.name
  vpc_security_group_ids          = [var.foundation.database_security_group_id]
  db_cluster_parameter_group_name = aws_rds_cluster_parameter_group.this[0].name
  port                            = 5432

  storage_encrypted = true
  kms_key_id        = local.key["database"]

  backup_retention_period      = var.backup_days
  preferred_backup_window      = local.backup_window
  preferred_maintenance_window = local.work_window
  copy_tags_to_snapshot        = true
  deletion_protection          = var.deletion_protection
  skip_final_snapshot          = local.final == null
  final_snapshot_identifier    = local.final
  delete_automated_backups     = false # a deleted database can still be restored for backup_days

  enabled_cloudwatch_logs_exports = ["postgresql"]

  serverlessv2_scaling_configuration {
    min_capacity             = var.aurora_min_capacity
    max_capacity             = var.aurora_max_capacity
    seconds_until_auto_pause = var.aurora_min_capacity == 0 ? 3600 : null
  }

  depends_on = [aws_cloudwatch_log_group.database, terraform_data.inputs]
}

resource "aws_rds_cluster_instance" "this" {
  count = local.aurora ? var.aurora_instances : 0

  identifier         = "${local.prefix}-${count.index + 1}"
  cluster_identifier = aws_rds_cluster.this[0].id
  instance_class     = "db.serverless"
  engine             = aws_rds_cluster.this[0].engine
  engine_version     = aws_rds_cluster.this[0].engine_version

  publicly_accessible        = false
  ca_cert_identifier         = local.authority
  auto_minor_version_upgrade = false
  copy_tags_to_snapshot      = true
  promotion_tier             = min(count.index, 15)

  performance_insights_enabled    = var.performance_insights
  performance_insights_kms_key_id = var.performance_insights ? local.key["database"] : null
}

# ---- RDS

resource "aws_db_parameter_group" "this" {
  count = local.aurora ? 0 : 1

  name_prefix = "${local.prefix}-${local.major}-"
  family      = "postgres${local.major}"
  description = "${local.prefix}: TLS only, no values in the log"

  dynamic "parameter" {
    for_each = local.parameters

    content {
      name         = parameter.key
      value        = parameter.value.value
      apply_method = parameter.value.method
    }
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_db_instance" "this" {
  count = local.aurora ? 0 : 1

  identifier     = local.prefix
  engine         = "postgres"
  engine_version = local.version
  instance_class = var.rds_instance_class
  db_name        = var.database_name
  multi_az       = var.rds_multi_az

  username                            = local.owner
  password                            = var.db_password
  iam_database_authentication_enabled = true

  db_subnet_group_name   = aws_db_subnet_group.this.name
  vpc_security_group_ids = [var.foundation.database_security_group_id]
  parameter_group_name   = aws_db_parameter_group.this[0].name
  publicly_accessible    = false
  port                   = 5432
  ca_cert_identifier     = local.authority

  storage_type          = "gp3"
  allocated_storage     = var.rds_storage_gb
  max_allocated_storage = var.rds_max_storage_gb
  storage_encrypted     = true
  kms_key_id            = local.key["database"]

  backup_retention_period     = var.backup_days
  backup_window               = local.backup_window
  maintenance_window          = local.work_window
  copy_tags_to_snapshot       = true
  deletion_protection         = var.deletion_protection
  skip_final_snapshot         = local.final == null
  final_snapshot_identifier   = local.final
  delete_automated_backups    = false # a deleted database can still be restored for backup_days
  auto_minor_version_upgrade  = false
  allow_major_version_upgrade = false

  enabled_cloudwatch_logs_exports = ["postgresql"]

  performance_insights_enabled    = var.performance_insights
  performance_insights_kms_key_id = var.performance_insights ? local.key["database"] : null

  depends_on = [aws_cloudwatch_log_group.database, terraform_data.inputs]
}
