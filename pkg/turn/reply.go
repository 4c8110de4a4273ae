package turn

import (
	"context"
	"log/slog"
)

// DeliverReplies is the function that posts what agents have said where the conversation is; ReplyTask is what it is invoked with. Whoever has said something
// invokes it after the commit; the function's sweep finds each minute what was lost (pkg/integration).
const DeliverReplies = "deliver-replies"

// ReplyTask names a thread whose replies wait, or one reply; the zero ReplyTask asks for a sweep.
type ReplyTask struct {
	TenantID   string `json:"tenantId"`
	ThreadUUID string `json:"threadUUID,omitempty"`
	ReplyID    string `json:"replyId,omitempty"`
}

// reply has what was said posted outside, if that is where the conversation is.
func (r *Runner) reply(ctx context.Context, failed slog.Level, a *attempt) {
	if !a.outside || r.Reply == nil {
		return
	}
	if err := r.Reply(ctx, a.tenantID, a.threadUUID); err != nil {
		slog.Log(ctx, failed, "the reply is posted later: the function was not started", "tenant_id", a.tenantID, "turn_id", a.turnID, "error", err)
	}
}
