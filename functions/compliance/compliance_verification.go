package compliance

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// keyFile is what the command calls the file that the public key was saved to.
const keyFile = "anchor-key.pub.pem"

// verification is how far the log has come, and what one needs to verify it.
type verification struct {
	LastAnchor        *cadence    `json:"lastAnchor"`
	BeaconedAt        *ident.Time `json:"beaconedAt"`
	PendingEvents     int64       `json:"pendingEvents"`
	QuarantinedEvents int64       `json:"quarantinedEvents"`
	Events            int64       `json:"events"`
	Tenants           int64       `json:"tenants"`
	CadenceSeconds    int64       `json:"cadenceSeconds"`
	AnchorBucket      string      `json:"anchorBucket"`
	PublicKey         string      `json:"publicKey"`
	Command           string      `json:"command"`
}

// cadence is a published anchor.
type cadence struct {
	CadenceID    string     `json:"cadenceId"`
	WindowFrom   ident.Time `json:"windowFrom"`
	WindowTo     ident.Time `json:"windowTo"`
	RecordedAt   ident.Time `json:"recordedAt"`
	AnchoredAt   ident.Time `json:"anchoredAt"`
	Events       int64      `json:"events"`
	Tenants      int64      `json:"tenants"`
	ObjectSHA256 string     `json:"objectSha256"`
}

// ComplianceVerification answers Query.complianceVerification.
func ComplianceVerification(env *handler.Env) lambda.Handler {
	db, operators, bucket, anchoring, publicKey := env.Reader(), env.Operators(), env.AuditReader(), env.Anchoring(), env.PublicKey()
	return handler.Resolver(func(ctx context.Context, _ struct{}) (verification, error) {
		if _, err := operators.Check(ctx); err != nil {
			return verification{}, err
		}
		public, err := publicKey(ctx)
		if err != nil {
			return verification{}, err
		}
		pem, err := sign.PublicPEM(public)
		if err != nil {
			return verification{}, err
		}
		var v verification
		err = db.Unbound(ctx, func(tx pgx.Tx) (err error) {
			v, err = state(ctx, tx)
			return err
		})
		v.CadenceSeconds, v.AnchorBucket, v.PublicKey = int64(anchoring.Interval.Seconds()), bucket.Name(), string(pem)
		v.Command = "audit-verifier verify --bucket " + bucket.Name() + " --public-key " + keyFile + " --origin " + anchoring.Origin
		return v, err
	})
}

// state is what the database knows, in one snapshot for each query.
func state(ctx context.Context, tx pgx.Tx) (v verification, err error) {
	err = tx.QueryRow(ctx, `select (select beacon_at from audit_ledger), (select count(*) from audit_outbox where state = 'pending'),
		(select count(*) from audit_outbox where state = 'quarantined'), coalesce(sum(length), 0)::bigint, count(*) from audit_heads`).
		Scan(&v.BeaconedAt, &v.PendingEvents, &v.QuarantinedEvents, &v.Events, &v.Tenants)
	if err != nil {
		return v, err
	}
	last, err := postgres.All(ctx, tx, func(row pgx.CollectableRow) (cadence, error) {
		var c cadence
		var number int64
		err := row.Scan(&number, &c.WindowFrom, &c.WindowTo, &c.RecordedAt, &c.AnchoredAt, &c.Events, &c.Tenants, &c.ObjectSHA256)
		c.CadenceID = anchor.CadenceID(uint64(number))
		return c, err
	}, `select number, window_from, window_to, recorded_at, anchored_at, events, tenants, object_sha256 from audit_anchors
		where anchored_at is not null order by number desc limit 1`)
	if len(last) > 0 {
		v.LastAnchor = &last[0]
	}
	return v, err
}
