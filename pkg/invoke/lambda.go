package invoke

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// Lambda invokes AWS Lambda functions asynchronously (InvocationType Event).
type Lambda struct {
	Client *lambda.Client
	Prefix string // put before the manifest name: "agentplatform-prod-"
}

// Invoke queues the payload with Lambda.
func (l Lambda) Invoke(ctx context.Context, function string, payload any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	_, err = l.Client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(l.Prefix + function), InvocationType: types.InvocationTypeEvent, Payload: body})
	if err != nil {
		return fmt.Errorf("invoke %s: %w", function, err)
	}
	return nil
}
