package main

import (
	"github.com/agentplatform/agentplatform/functions/webhook"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("create-webhook", webhook.CreateWebhook, cloud.DB, ssm.IntegrationSecrets) }
