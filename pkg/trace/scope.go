package trace

import "context"

// Scope is whose work a context is. The ids are strings as the API has them, the thread's is the public one.
type Scope struct {
	TenantID  string
	ThreadID  string
	TurnID    string
	AgentID   string
	RequestID string // of the function's call that the work is part of
}

type scopeKey struct{}

// In narrows ctx's scope: what s leaves empty stays as it was.
func In(ctx context.Context, s Scope) context.Context {
	was := From(ctx)
	for _, f := range []struct{ field, fallback *string }{{&s.TenantID, &was.TenantID}, {&s.ThreadID, &was.ThreadID}, {&s.TurnID, &was.TurnID},
		{&s.AgentID, &was.AgentID}, {&s.RequestID, &was.RequestID}} {
		if *f.field == "" {
			*f.field = *f.fallback
		}
	}
	return context.WithValue(ctx, scopeKey{}, &s)
}

// From is whose work ctx is; empty where nobody has said.
func From(ctx context.Context) Scope {
	if s, ok := ctx.Value(scopeKey{}).(*Scope); ok {
		return *s
	}
	return Scope{}
}

// Identify adds whose work a span is.
func (s *Span) Identify(ctx context.Context) {
	if s == nil {
		return
	}
	of := From(ctx)
	s.String(ConversationID, of.ThreadID)
	s.String(AgentID, of.AgentID)
	s.String(TenantID, of.TenantID)
	s.String(TurnID, of.TurnID)
	s.String(RequestID, of.RequestID)
}
