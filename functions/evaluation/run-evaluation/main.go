package main

import (
	"github.com/agentplatform/agentplatform/functions/evaluation"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("run-evaluation", evaluation.RunEvaluation, cloud.DB, bedrock.Model, appsync.Publish, awslambda.Invoke)
}
