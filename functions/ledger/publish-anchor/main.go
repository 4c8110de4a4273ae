package main

import (
	"github.com/agentplatform/agentplatform/functions/ledger"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("publish-anchor", ledger.PublishAnchor, cloud.Ledger, cloud.Sign, cloud.Objects)
}
