package main

import (
	"github.com/agentplatform/agentplatform/functions/webhook"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("list-webhooks", webhook.ListWebhooks, cloud.DB, secretsmanager.Secrets) }
