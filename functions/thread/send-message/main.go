package main

import (
	"github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("send-message", thread.SendMessage, cloud.DB, cloud.Publish, cloud.Invoke) }
