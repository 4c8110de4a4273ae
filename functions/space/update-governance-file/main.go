package main

import (
	"github.com/agentplatform/agentplatform/functions/space"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("update-governance-file", space.UpdateGovernanceFile) }
