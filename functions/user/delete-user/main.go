package main

import (
	"github.com/agentplatform/agentplatform/functions/user"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/cognito"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("delete-user", user.DeleteUser, cloud.DB, awslambda.Invoke, cognito.Identity, ssm.IntegrationSecrets, ssm.ConnectionSecrets, secretsmanager.Secrets)
}
