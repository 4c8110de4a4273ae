// Package agentcore is Amazon Bedrock AgentCore behind the package of that name: Runtime hands turns to a runtime that it hosts, and Runtimes puts
// those of a deployment behind the need runtime.
package agentcore

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentcore"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// Runtimes is the adapter for the need runtime. A runtime may also be at a URL.
func Runtimes(a *cloud.Account, p *handler.Ports) {
	p.Runtimes = sync.OnceValue(func() agentcore.Runtimes {
		runtimes := agentcore.Runtimes{}
		client := sync.OnceValue(func() *bedrockagentcore.Client { return bedrockagentcore.NewFromConfig(a.AWS()) })
		for selector, target := range cloud.Must(agentcore.Parse(a.AgentRuntimes)) {
			if target.URL != "" {
				runtimes[selector] = agentcore.HTTP{URL: target.URL}
			} else {
				runtimes[selector] = Runtime{Client: client(), Target: target}
			}
		}
		return runtimes
	})
}

// Runtime is an agentcore.Runtime at Amazon Bedrock AgentCore.
type Runtime struct {
	Client *bedrockagentcore.Client
	Target agentcore.Target
}

// Start implements agentcore.Runtime. An error of the service names its request id.
func (r Runtime) Start(ctx context.Context, session string, dispatch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, agentcore.Patience)
	defer cancel()
	in := &bedrockagentcore.InvokeAgentRuntimeInput{AgentRuntimeArn: &r.Target.ARN, RuntimeSessionId: &session, Payload: dispatch,
		ContentType: aws.String("application/json"), Accept: aws.String("text/event-stream")}
	if r.Target.Qualifier != "" {
		in.Qualifier = &r.Target.Qualifier
	}
	out, err := r.Client.InvokeAgentRuntime(ctx, in)
	if err != nil {
		return fmt.Errorf("agentcore: %w", err)
	}
	defer out.Response.Close()
	return agentcore.Accepted(out.Response)
}
