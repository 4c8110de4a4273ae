package main

import (
	"github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("summarize-thread", turn.SummarizeThread, cloud.DB, bedrock.Model) }
