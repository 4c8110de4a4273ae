// Package graphql is the HTTP GraphQL function: POST /graphql behind the HTTP API. It executes the schema over the other functions, in
// process; what it needs is what they need.
package graphql

import (
	"context"
	"encoding/base64"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/gateway"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/schema"
)

// Graphql answers POST /graphql.
func Graphql(rows manifest.Manifest, table map[string]handler.Constructor, ports *handler.Ports) lambda.Handler {
	g, err := gateway.New(gateway.Config{SDL: schema.SDL, Prelude: schema.Prelude, Manifest: rows, Functions: handler.Build(rows.GraphQL(), table, ports)})
	if err != nil {
		panic(err)
	}
	return handler.HTTP(func(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		claims := tenant.Claims{}
		if a := r.RequestContext.Authorizer; a != nil && a.JWT != nil {
			for name, value := range a.JWT.Claims {
				claims[name] = value
			}
		}
		body := []byte(r.Body)
		if r.IsBase64Encoded {
			decoded, err := base64.StdEncoding.DecodeString(r.Body)
			if err != nil {
				return events.APIGatewayV2HTTPResponse{}, err
			}
			body = decoded
		}
		status, answer := g.GraphQLHTTP(ctx, gateway.Post{Body: body, ContentType: r.Headers["content-type"], Claims: claims, RequestID: r.RequestContext.RequestID})
		return events.APIGatewayV2HTTPResponse{StatusCode: status, Headers: map[string]string{"content-type": "application/json"}, Body: string(answer)}, nil
	})
}
