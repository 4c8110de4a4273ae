package main

import (
	"github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("thread-events", thread.ThreadEvents, cloud.DB) }
