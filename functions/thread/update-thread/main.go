package main

import (
	"github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("update-thread", thread.UpdateThread, cloud.DB, appsync.Publish) }
