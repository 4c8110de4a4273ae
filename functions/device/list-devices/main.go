package main

import (
	"github.com/agentplatform/agentplatform/functions/device"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("list-devices", device.ListDevices, cloud.DB, secretsmanager.Secrets)
}
