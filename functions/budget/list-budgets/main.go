package main

import (
	"github.com/agentplatform/agentplatform/functions/budget"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("list-budgets", budget.ListBudgets, cloud.DB, secretsmanager.Secrets) }
