package main

import (
	"github.com/agentplatform/agentplatform/functions/tenant"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("update-tenant", tenant.UpdateTenant, cloud.DB)
}
