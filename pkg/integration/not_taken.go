package integration

import (
	"context"
	"log/slog"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/metric"
)

// ignored counts a delivery that says nothing to the agent: there is no other trace of it.
func ignored(ctx context.Context, d Delivery) {
	about := []slog.Attr{slog.String("tenant_id", d.TenantID), slog.String("integration_id", *d.IntegrationID), slog.String("provider", string(d.Provider))}
	metric.Emit(ctx, metric.Event{Line: "a delivery that says nothing to the agent", About: about, Sets: []metric.Set{{Figures: []metric.Figure{metric.Of("integrations.ignored", 1)}}}})
}

// held logs that the provider has kept something back: it is no error of the provider's, and the tenant sees why something is missing. It has room in the log
// that strangers cannot fill.
func (r *Receiver) held(ctx context.Context, d Delivery, why string) (Received, error) {
	if r.noise.Take(*d.IntegrationID+" held", noiseLimit) > 0 {
		return Received{Taken: Taken{Delivery: Delivery{TenantID: d.TenantID, Outcome: RateLimited}}}, nil
	}
	taken, err := Taking{Delivery: d}.log(ctx, r.db, RateLimited, &why)
	return Received{Taken: taken}, err
}

var errDisabled = fault.New(fault.Forbidden, "the integration is disabled")

// refuse logs a delivery that is not taken in, and gives back why. What anybody may send is not logged without end.
func (r *Receiver) refuse(ctx context.Context, d Delivery, outcome Outcome, why error) error {
	if r.noise.Take(*d.IntegrationID, noiseLimit) > 0 {
		return why
	}
	f := fault.From(why)
	if f.Type == fault.InternalError {
		return r.broke(ctx, d, why)
	}
	return r.log(ctx, d, outcome, f)
}

// log writes why a delivery is not taken in, and gives it back.
func (r *Receiver) log(ctx context.Context, d Delivery, outcome Outcome, f *fault.Error) error {
	if _, err := (Taking{Delivery: d}).log(ctx, r.db, outcome, &f.Message); err != nil {
		return err
	}
	return f
}

// broke logs a delivery that the platform could not take in, if it can: the provider sends it again.
func (r *Receiver) broke(ctx context.Context, d Delivery, why error) error {
	reason := "internal error"
	if _, err := (Taking{Delivery: d}).log(context.WithoutCancel(ctx), r.db, Failed, &reason); err != nil {
		slog.WarnContext(ctx, "a delivery that was not taken in is not in the log", "tenant_id", d.TenantID, "integration_id", *d.IntegrationID, "error", err)
	}
	return why
}
