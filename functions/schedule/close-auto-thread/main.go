package main

import (
	"github.com/agentplatform/agentplatform/functions/schedule"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("close-auto-thread", schedule.CloseAutoThread, cloud.DB, appsync.Publish)
}
