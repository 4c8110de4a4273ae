package main

import (
	"github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("replay-delivery", integration.ReplayDelivery, cloud.DB, appsync.Publish, awslambda.Invoke)
}
