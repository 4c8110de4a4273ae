// Package user holds who belongs to a tenant, and how a tenant begins.
//
// What holds:
//   - A user belongs to one tenant, and an e-mail address to one user, over all tenants. Addresses are stored in lower case.
//   - A tenant that had an active owner keeps one: whoever disables or deletes a user locks it and all owners first, in one order.
//   - Only an owner makes, revives, disables or deletes an owner. Nobody disables or deletes themselves.
//   - Whoever manages users is looked up again: a token outlives its user's role by up to an hour, in which a disabled admin could
//     otherwise invite itself again.
//   - Each function answers, beside the user, the events that its transaction must record; none means that nothing was done. The identity
//     pool is told after that, as the transaction's last step.
package user

import (
	"net/mail"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Status is whether a user may sign in.
type Status string

const (
	Active   Status = "active"
	Disabled Status = "disabled"
)

// User is a user as the API shows it.
type User struct {
	ID        string      `json:"id"`
	Email     string      `json:"email"`
	Role      tenant.Role `json:"role"`
	Status    Status      `json:"status"`
	CreatedAt ident.Time  `json:"createdAt"`
	UpdatedAt ident.Time  `json:"updatedAt"`
}

// ranks are the roles, by what they may do.
var ranks = map[tenant.Role]int{tenant.Member: 1, tenant.Admin: 2, tenant.Owner: 3}

// MaxEmail is the longest address that a mail server takes, in bytes (RFC 5321 §4.5.3.1.3).
const MaxEmail = 254

// CheckEmail is the address in the form in which it is stored. It must be an addr-spec (RFC 5322 §3.4.1) and nothing else: no name, no brackets,
// no comment.
func CheckEmail(field, address string) (string, error) {
	if err := text.Check(field, address, 1, MaxEmail); err != nil {
		return "", err
	}
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Address != address || parsed.Name != "" || strings.ContainsAny(address, " \t\r\n") {
		return "", fault.Invalid("%s is not an e-mail address", field)
	}
	return strings.ToLower(address), nil
}

func checkReason(reason *string) error { return text.CheckOptional("reason", reason, 1<<10) }
