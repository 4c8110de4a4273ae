package main

import (
	"github.com/agentplatform/agentplatform/functions/space"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("update-governance-file", space.UpdateGovernanceFile, cloud.DB, awslambda.Invoke, secretsmanager.Secrets)
}
