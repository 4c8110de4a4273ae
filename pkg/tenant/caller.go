// Package tenant says who a request is for: the caller, taken from the token's claims and carried in the context.
//
// A tenant is never an argument of an operation. It comes from here and goes into the transaction (postgres.InTenant).
package tenant

import (
	"context"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Role is a user's role in the one tenant it belongs to.
type Role string

const (
	Owner  Role = "owner"
	Admin  Role = "admin"
	Member Role = "member"
)

// Caller is who this request is.
type Caller struct {
	TenantID      string // empty: a valid token of somebody without a tenant
	TenantSlug    string
	UserID        string // users.id
	Email         string
	EmailVerified bool
	Role          Role
	SessionID     string // of the sign-in that the token comes from
	RequestID     string // of the request, as in the log
}

// Actor is how the audit log names the caller: by its user id, or, a platform operator who belongs to no tenant and has none, by its address.
func (c Caller) Actor() string {
	if c.UserID != "" {
		return c.UserID
	}
	return strings.ToLower(c.Email)
}

type key struct{}

// With carries the caller in the context.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// SignedIn is whoever signed in for this request, of a tenant or of none; nobody: not ok.
func SignedIn(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(key{}).(Caller)
	return c, ok
}

// From is the caller of this request, which must belong to a tenant.
func From(ctx context.Context) (Caller, error) {
	c, ok := SignedIn(ctx)
	if !ok {
		return Caller{}, fault.New(fault.Unauthorized, "no valid token")
	}
	if c.TenantID == "" {
		return Caller{}, fault.New(fault.Forbidden, "this user belongs to no tenant")
	}
	return c, nil
}

// OwnerOrAdmin is From for operations that only the tenant's owner and admins may call.
func OwnerOrAdmin(ctx context.Context) (Caller, error) {
	c, err := From(ctx)
	if err != nil {
		return Caller{}, err
	}
	if c.Role != Owner && c.Role != Admin {
		return Caller{}, fault.New(fault.Forbidden, "this needs the role admin or owner")
	}
	return c, nil
}

// Operators is the list of platform operators: lower-case e-mail addresses.
type Operators []string

// ParseOperators reads the comma-separated form of SERVICE_PLATFORM_OPERATOR_EMAILS.
func ParseOperators(list string) Operators {
	var o Operators
	for mail := range strings.SplitSeq(list, ",") {
		if mail = strings.ToLower(strings.TrimSpace(mail)); mail != "" {
			o = append(o, mail)
		}
	}
	return o
}

// Has reports whether the e-mail address is a platform operator's.
func (o Operators) Has(email string) bool {
	return slices.Contains(o, strings.ToLower(email))
}

// Check is the caller when it is a platform operator: listed, and by a verified e-mail address. Its tenant does not matter.
func (o Operators) Check(ctx context.Context) (Caller, error) {
	c, ok := SignedIn(ctx)
	if !ok {
		return Caller{}, fault.New(fault.Unauthorized, "no valid token")
	}
	if !c.EmailVerified || !o.Has(c.Email) {
		return Caller{}, fault.New(fault.Forbidden, "this is for platform operators")
	}
	return c, nil
}
