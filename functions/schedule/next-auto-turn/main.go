package main

import (
	"github.com/agentplatform/agentplatform/functions/schedule"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("next-auto-turn", schedule.NextAutoTurn, cloud.DB, bedrock.Model, appsync.Publish)
}
