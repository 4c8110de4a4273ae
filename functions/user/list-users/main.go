package main

import (
	"github.com/agentplatform/agentplatform/functions/user"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("list-users", user.ListUsers, cloud.DB, secretsmanager.Secrets) }
