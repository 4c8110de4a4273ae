// Package awslambda is AWS Lambda behind package invoke: Invoker calls functions, and Invoke puts it behind the needs invoke:<function>.
package awslambda

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/invoke"
)

// Invoke is the adapter for the needs invoke:<function>.
func Invoke(a *cloud.Account, p *handler.Ports) {
	p.Invoke = sync.OnceValue(func() invoke.Invoker {
		return Invoker{Client: lambda.NewFromConfig(a.AWS()), Prefix: cloud.Required("FUNCTION_PREFIX", a.FunctionPrefix)}
	})
}

// Invoker invokes AWS Lambda functions asynchronously (InvocationType Event).
type Invoker struct {
	Client *lambda.Client
	Prefix string // put before the manifest name: "agentplatform-prod-"
}

// Invoke queues the payload with Lambda.
func (i Invoker) Invoke(ctx context.Context, function string, payload any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	_, err = i.Client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(i.Prefix + function), InvocationType: types.InvocationTypeEvent, Payload: body})
	if err != nil {
		return fmt.Errorf("invoke %s: %w", function, err)
	}
	return nil
}
