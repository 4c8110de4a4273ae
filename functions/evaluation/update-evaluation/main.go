package main

import (
	"github.com/agentplatform/agentplatform/functions/evaluation"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("update-evaluation", evaluation.UpdateEvaluation, cloud.DB) }
