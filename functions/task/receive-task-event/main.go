package main

import (
	"github.com/agentplatform/agentplatform/functions/task"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("receive-task-event", task.ReceiveTaskEvent, cloud.DB, awslambda.Invoke, ssm.IntegrationSecrets)
}
