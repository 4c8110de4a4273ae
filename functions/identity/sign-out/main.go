package main

import (
	"github.com/agentplatform/agentplatform/functions/identity"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("sign-out", identity.SignOut, cloud.DB, cloud.Invoke, cloud.Identity) }
