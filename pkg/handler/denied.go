package handler

import (
	"context"
	"log/slog"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/metric"
)

// limits are the errors by which a limit refuses a call, and what is counted of them.
var limits = map[fault.Type]string{fault.RateLimitExceeded: "denials.rate_limit", fault.BudgetExceeded: "denials.budget"}

// denied counts what a limit has refused.
func denied(ctx context.Context, f *fault.Error, about ...slog.Attr) {
	if name := limits[f.Type]; name != "" {
		metric.Emit(ctx, metric.Event{Line: "refused", About: append(about, slog.String("error_type", string(f.Type))), Sets: []metric.Set{{Figures: []metric.Figure{metric.Of(name, 1)}}}})
	}
}
