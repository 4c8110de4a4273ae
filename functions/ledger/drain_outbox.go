package ledger

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// DrainOutbox moves recorded events into the chains: invoked when there are new ones, and once a minute for what no invoke told of.
func DrainOutbox(env *handler.Env) lambda.Handler {
	how := env.Anchoring()
	l := ledger.New(ledger.Config{DB: env.Ledger(), Bucket: env.Audit(), Signer: env.Sign(), Key: env.EmissionKey(), Origin: how.Origin,
		Interval: how.Interval, Retention: how.Retention, Signal: env.Signal()})
	return handler.Schedule(l.Drain)
}
