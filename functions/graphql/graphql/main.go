package main

import (
	"github.com/agentplatform/agentplatform/functions/graphql"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("graphql", graphql.Graphql, awslambda.Call)
}
