package main

import (
	"github.com/agentplatform/agentplatform/functions/webhook"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("delete-webhook", webhook.DeleteWebhook, cloud.DB, ssm.IntegrationSecrets) }
