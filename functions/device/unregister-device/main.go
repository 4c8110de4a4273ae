package main

import (
	"github.com/agentplatform/agentplatform/functions/device"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/sns"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("unregister-device", device.UnregisterDevice, cloud.DB, sns.Push)
}
