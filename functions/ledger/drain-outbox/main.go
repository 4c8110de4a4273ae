package main

import (
	"github.com/agentplatform/agentplatform/functions/ledger"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/kms"
	"github.com/agentplatform/agentplatform/pkg/cloud/s3"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("drain-outbox", ledger.DrainOutbox, cloud.Ledger, kms.Sign, s3.Objects, secretsmanager.Secrets)
}
