package main

import (
	"github.com/agentplatform/agentplatform/functions/tenant"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/cognito"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("create-tenant", tenant.CreateTenant, cloud.DB, awslambda.Invoke, cognito.Identity, secretsmanager.Secrets)
}
