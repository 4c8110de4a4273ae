package main

import (
	"github.com/agentplatform/agentplatform/functions/user"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/cognito"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("invite-user", user.InviteUser, cloud.DB, awslambda.Invoke, cognito.Identity, secretsmanager.Secrets)
}
