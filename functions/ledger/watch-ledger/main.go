package main

import (
	"github.com/agentplatform/agentplatform/functions/ledger"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/s3"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("watch-ledger", ledger.WatchLedger, cloud.Reader, s3.Objects) }
