package user

import (
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// event is an audited act on u. Who did it is whoever records it.
func (u User) event(t audit.Type, payload map[string]any) audit.Event {
	return audit.Event{Type: t, ResourceType: "user", ResourceID: u.ID, Payload: payload}
}

// invitation is the event of u's invitation; by is the actor.
func (u User) invitation(by string) audit.Event {
	return u.event(audit.UserInvited, map[string]any{"email": u.Email, "role": string(u.Role), "invitedBy": by})
}

func (u User) creation() audit.Event {
	return u.event(audit.UserCreated, map[string]any{"userId": u.ID, "email": u.Email, "role": string(u.Role)})
}

// end is the event of u's disabling or deletion.
func (u User) end(t audit.Type, reason *string) audit.Event {
	payload := map[string]any{"userId": u.ID}
	if reason != nil && *reason != "" {
		payload["reason"] = *reason
	}
	return u.event(t, payload)
}

// SignOut is the event of the caller's sign-out.
func SignOut(c tenant.Caller) audit.Event {
	payload := map[string]any{"userId": c.UserID}
	if c.SessionID != "" {
		payload["sessionId"] = c.SessionID
	}
	return User{ID: c.UserID}.event(audit.SignedOut, payload)
}
