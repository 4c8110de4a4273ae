package main

import (
	"github.com/agentplatform/agentplatform/functions/identity"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("post-authentication", identity.PostAuthentication, cloud.DB, awslambda.Invoke, secretsmanager.Secrets)
}
