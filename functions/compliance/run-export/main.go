package main

import (
	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("run-export", compliance.RunExport, cloud.DB, cloud.Reader, cloud.Invoke, cloud.Sign, cloud.Objects)
}
