package main

import (
	"github.com/agentplatform/agentplatform/functions/user"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("disable-user", user.DisableUser, cloud.DB, cloud.Invoke, cloud.Identity) }
