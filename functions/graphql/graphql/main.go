package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/functions/graphql"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/cognito"
	"github.com/agentplatform/agentplatform/pkg/cloud/kms"
	"github.com/agentplatform/agentplatform/pkg/cloud/s3"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/launch"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

func main() {
	launch.Start("graphql", func(rows manifest.Manifest, ports *handler.Ports) lambda.Handler {
		return graphql.Graphql(rows, functions.Table, ports)
	}, cloud.DB, cloud.Reader, appsync.Publish, awslambda.Invoke, kms.Sign, s3.Objects, cognito.Identity, secretsmanager.Secrets)
}
