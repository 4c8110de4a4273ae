package main

import (
	"github.com/agentplatform/agentplatform/functions/routine"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("delete-routine", routine.DeleteRoutine, cloud.DB) }
