package main

import (
	"github.com/agentplatform/agentplatform/functions/tool"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("tool-server-tools", tool.ToolServerTools, cloud.DB)
}
