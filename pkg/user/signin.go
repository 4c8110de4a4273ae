package user

import (
	"maps"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/audit"
)

// SignIn is a user's sign-in, as the identity pool's triggers tell of it.
type SignIn struct {
	TenantID string `json:"-"` // whose it is, and that is looked up
	UserID   string `json:"-"`
	Method   string `json:"method"` // password or federated
	Origin
}

// Origin is where a sign-in came from, as far as that is known.
type Origin struct {
	IP        string `json:"ip,omitempty"`
	UserAgent string `json:"userAgent,omitempty"` // kept of sign-ins that succeeded
}

// identityPool is the actor of what nobody who is known has done.
const identityPool = "identity-pool"

// Succeeded is the event of a sign-in.
func (s SignIn) Succeeded() audit.Event {
	e := s.event(audit.SignInSucceeded, map[string]string{"userId": s.UserID, "method": s.Method, "ip": s.IP, "userAgent": s.UserAgent})
	e.Actor, e.ActorType = s.UserID, audit.ActorUser
	return e
}

// Failed is the event of a sign-in that was refused. Whoever tried is not known: it need not have been the user.
func (s SignIn) Failed(email, reason string) audit.Event {
	e := s.event(audit.SignInFailed, map[string]string{"email": strings.ToLower(email), "method": s.Method, "reason": reason, "ip": s.IP})
	e.Actor, e.ActorType = identityPool, audit.ActorSystem
	return e
}

func (s SignIn) event(t audit.Type, known map[string]string) audit.Event {
	maps.DeleteFunc(known, func(_, value string) bool { return value == "" })
	payload := make(map[string]any, len(known))
	for name, value := range known {
		payload[name] = value
	}
	e := User{ID: s.UserID}.event(t, payload)
	e.TenantID, e.Source = s.TenantID, audit.SourceSystem
	return e
}
