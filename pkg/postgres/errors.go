package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// SQLSTATE codes, https://www.postgresql.org/docs/15/errcodes-appendix.html
const (
	featureNotSupported   = "0A000" // here: "cached plan must not change result type", after a migration
	outOfRange            = "22003" // a JSON number that jsonb cannot hold
	invalidByteSequence   = "22021" // text that is not UTF-8, or holds NUL
	untranslatable        = "22P05" // \u0000 in jsonb
	foreignKeyViolation   = "23503"
	uniqueViolation       = "23505"
	checkViolation        = "23514"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	adminShutdown         = "57P01" // the server, or one connection, is being stopped
	insufficientPrivilege = "42501" // also: a row that violates a row-level security policy
)

// IsUnique reports whether err is a violation of the unique constraint or index of that name; "" is any.
func IsUnique(err error, constraint string) bool { return violates(err, uniqueViolation, constraint) }

// IsCheck reports whether err is a violation of the check constraint of that name; "" is any.
func IsCheck(err error, constraint string) bool { return violates(err, checkViolation, constraint) }

// IsForeignKey reports whether err is a violation of the foreign key of that name; "" is any.
func IsForeignKey(err error, constraint string) bool {
	return violates(err, foreignKeyViolation, constraint)
}

// IsDenied reports whether the role may not do this: a missing grant, or a row that a policy refuses.
func IsDenied(err error) bool { return violates(err, insufficientPrivilege, "") }

func violates(err error, code, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code && (constraint == "" || pg.ConstraintName == constraint)
}

// lost reports whether the transaction failed only because of what went on beside it, so that another run may succeed.
func lost(err error) bool {
	var pg *pgconn.PgError
	var begin *beginError
	isPg, isBegin := errors.As(err, &pg), errors.As(err, &begin)
	if isBegin && (!isPg || pg.Code == adminShutdown) {
		return true // a pooled connection died while it was idle: nothing was run on it
	}
	if !isPg {
		return false
	}
	switch pg.Code {
	case serializationFailure, deadlockDetected:
		return true
	case featureNotSupported:
		return pg.Routine == "RevalidateCachedQuery" // pgx has dropped the statement, the next run prepares it anew
	}
	return false
}

// readable is err as a caller may read it where the fault lies in the caller's text. Handlers check text before; this is the last line.
func readable(err error) error {
	if violates(err, outOfRange, "") {
		return fault.Invalid("a number is out of range")
	}
	if violates(err, invalidByteSequence, "") || violates(err, untranslatable, "") {
		return fault.Invalid("text must be valid UTF-8 without NUL characters")
	}
	return err
}
