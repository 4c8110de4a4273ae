package main

import (
	"github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("reap-turns", turn.ReapTurns, cloud.DB, cloud.Publish, cloud.Invoke) }
