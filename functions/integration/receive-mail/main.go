package main

import (
	"github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/s3"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("receive-mail", integration.ReceiveMail, cloud.DB, appsync.Publish, awslambda.Invoke, s3.Objects)
}
