package main

import (
	"github.com/agentplatform/agentplatform/functions/tenant"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("create-tenant", tenant.CreateTenant, cloud.DB, cloud.Invoke, cloud.Identity)
}
