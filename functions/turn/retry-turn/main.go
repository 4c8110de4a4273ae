package main

import (
	"github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("retry-turn", turn.RetryTurn, cloud.DB, appsync.Publish, awslambda.Invoke)
}
