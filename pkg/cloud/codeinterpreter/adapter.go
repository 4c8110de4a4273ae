package codeinterpreter

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/bedrockagentcore"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// Of one process: a function has one turn, whose tools run side by side; the agent runtime has many. The service bounds the account's sessions besides.
const (
	atOnce   = 16
	waiting  = 64
	patience = 30 * time.Second
)

// Sandbox is the adapter for the need sandbox.
func Sandbox(a *cloud.Account, p *handler.Ports) {
	p.Sandbox = sync.OnceValue(func() sandbox.Sandbox {
		if a.CodeInterpreterID == "" {
			return none{}
		}
		return sandbox.NewBound(New(Config{Client: bedrockagentcore.NewFromConfig(a.AWS()), ID: a.CodeInterpreterID}), atOnce, waiting, patience)
	})
}

// none is the sandbox of a deployment without one.
type none struct{}

func (none) Run(context.Context, sandbox.Script) (sandbox.Result, error) {
	return sandbox.Result{}, fault.New(fault.Forbidden, "this deployment runs no code")
}
