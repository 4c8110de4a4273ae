package main

import (
	"github.com/agentplatform/agentplatform/functions/webhook"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("test-webhook", webhook.TestWebhook, cloud.DB, awslambda.Invoke) }
