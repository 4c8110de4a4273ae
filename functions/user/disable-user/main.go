package main

import (
	"github.com/agentplatform/agentplatform/functions/user"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("disable-user", user.DisableUser) }
