package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/functions/graphql"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/launch"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

func main() {
	launch.Start("graphql", func(rows manifest.Manifest, ports *handler.Ports) lambda.Handler {
		return graphql.Graphql(rows, functions.Table, ports)
	}, cloud.DB, cloud.Reader, cloud.Publish, cloud.Invoke, cloud.Sign, cloud.Objects, cloud.Identity)
}
