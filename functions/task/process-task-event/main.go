package main

import (
	"github.com/agentplatform/agentplatform/functions/task"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/sns"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("process-task-event", task.ProcessTaskEvent, cloud.DB, appsync.Publish, sns.Push, ssm.IntegrationSecrets, ssm.ConnectionSecrets)
}
