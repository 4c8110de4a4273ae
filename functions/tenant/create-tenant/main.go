package main

import (
	"github.com/agentplatform/agentplatform/functions/tenant"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("create-tenant", tenant.CreateTenant) }
