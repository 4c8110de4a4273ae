package main

import (
	"github.com/agentplatform/agentplatform/functions/device"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/sns"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("register-device", device.RegisterDevice, cloud.DB, sns.Push)
}
