package main

import (
	"github.com/agentplatform/agentplatform/functions/space"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("update-governance-file", space.UpdateGovernanceFile, cloud.DB, cloud.Invoke)
}
