package main

import (
	"github.com/agentplatform/agentplatform/functions/tool"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("approve-server-tools", tool.ApproveServerTools, cloud.DB)
}
