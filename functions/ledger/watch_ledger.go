package ledger

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// WatchLedger tells of events that wait, of quarantine, and of beacons and anchors that are late. It can only read.
func WatchLedger(env *handler.Env) lambda.Handler {
	l := ledger.New(ledger.Config{DB: env.Reader(), Bucket: env.AuditReader(), Interval: env.Anchoring().Interval})
	return handler.Schedule(l.Watch)
}
