package main

import (
	"github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("prune-turns", turn.PruneTurns, cloud.DB) }
