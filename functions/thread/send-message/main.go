package main

import (
	"github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("send-message", thread.SendMessage, cloud.DB, appsync.Publish, awslambda.Invoke)
}
