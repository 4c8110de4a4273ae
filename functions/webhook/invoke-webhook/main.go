package main

import (
	"github.com/agentplatform/agentplatform/functions/webhook"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("invoke-webhook", webhook.InvokeWebhook, cloud.DB, awslambda.Invoke) }
