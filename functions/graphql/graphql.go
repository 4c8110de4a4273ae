// Package graphql is the HTTP GraphQL function: POST /graphql behind the HTTP API. It executes the schema and has each field answered by the
// field's own function, as AppSync does: what it may do itself is call these, and nothing else.
package graphql

import (
	"context"
	"encoding/base64"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/gateway"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/schema"
)

// Graphql answers POST /graphql.
func Graphql(env *handler.Env) lambda.Handler {
	rows, err := manifest.Parse(schema.Routes)
	if err != nil {
		panic(err)
	}
	rows = rows.GraphQL()
	fields, functions := env.Fields(), map[string]lambda.Handler{}
	for _, row := range rows.Rows {
		functions[row.Name] = field{fields, row.Name}
	}
	g, err := gateway.New(gateway.Config{SDL: schema.SDL, Prelude: schema.Prelude, Manifest: rows, Functions: functions})
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

// field is the function that answers one, somewhere else.
type field struct {
	fields invoke.Caller
	name   string
}

func (f field) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	return f.fields.Call(ctx, f.name, event)
}
