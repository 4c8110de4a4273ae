package ledger

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// PublishAnchor anchors every chain at the end of each cadence. It is called more often than that: a call between two ends does nothing, and what one
// call could not finish the next takes up a minute later.
func PublishAnchor(env *handler.Env) lambda.Handler {
	how := env.Anchoring()
	l := ledger.New(ledger.Config{DB: env.Ledger(), Bucket: env.Audit(), Signer: env.Sign(), Origin: how.Origin,
		Interval: how.Interval, Retention: how.Retention, WitnessURL: how.WitnessURL, WitnessKey: how.WitnessKey, Signal: env.Signal()})
	return handler.Schedule(l.PublishAnchor)
}
