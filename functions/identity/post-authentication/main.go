package main

import (
	"github.com/agentplatform/agentplatform/functions/identity"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("post-authentication", identity.PostAuthentication, cloud.DB, cloud.Invoke)
}
