package main

import (
	"github.com/agentplatform/agentplatform/functions/identity"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("sign-in-failed", identity.SignInFailed, cloud.DB, awslambda.Invoke, secretsmanager.Secrets)
}
