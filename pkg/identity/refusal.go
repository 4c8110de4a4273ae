package identity

import (
	"fmt"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// refusal is the answer to every token that is not good. Callers see one text; the reason is behind Unwrap.
type refusal struct{ reason error }

const refusedText = "missing or invalid token"

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

func (r refusal) Error() string { return refusedText }

// Unwrap is the reason, for the log only.
func (r refusal) Unwrap() error { return r.reason }

// As makes fault.From see the refusal as Unauthorized.
func (r refusal) As(target any) bool {
	e, ok := target.(**fault.Error)
	if ok {
		*e = fault.New(fault.Unauthorized, refusedText)
	}
	return ok
}
