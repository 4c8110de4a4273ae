package main

import (
	"github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("thread-turns", thread.ThreadTurns, cloud.DB, secretsmanager.Secrets) }
