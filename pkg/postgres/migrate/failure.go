package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes, https://www.postgresql.org/docs/15/errcodes-appendix.html
const (
	lockNotAvailable = "55P03"
	queryCanceled    = "57014"
)

// failed says why m was not applied to a database at that version.
func failed(ctx context.Context, c Config, m migration, version int64, err error) error {
	pg := postgresError(err)
	left := fmt.Sprintf("All of it was rolled back: the database is at version %d, and the release that is deployed goes on", version)
	remedy := "Correct the file and deploy again"
	switch {
	case ctx.Err() != nil, pg != nil && pg.Code == queryCanceled:
		remedy = fmt.Sprintf("It took longer than a migration may (%v for each statement). Split it, and deploy again", c.Statement)
	case pg == nil, pg.Code[:2] == "57", pg.Code[:2] == "08": // the connection is gone, perhaps in the middle of the commit
		left = "It was applied as a whole or not at all"
		remedy = "Deploy again: it goes on from what the database has"
	case pg.Code == lockNotAvailable:
		remedy = fmt.Sprintf("A running transaction holds a lock that it needs, for longer than %v. Deploy again when the database has less to do", c.Lock)
	}
	return fmt.Errorf("the migration %s failed%s: %w. %s. %s", m.name, place(m, err), described(ctx, err), left, remedy)
}

// place is where in the file the error was met: PostgreSQL says so of what it cannot read; else it is the statement after those that were done.
func place(m migration, err error) string {
	var at *statementError
	if !errors.As(err, &at) {
		return ""
	}
	line := 0
	if pg := postgresError(err); pg != nil && pg.Position > 0 {
		line = 1 + strings.Count(upTo(m.text, int(pg.Position)-1), "\n")
	} else if all := statements(m.text); at.done < len(all) {
		line = all[at.done].line
	}
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" at line %d (%s)", line, excerpt(strings.Split(m.text, "\n")[line-1]))
}

// upTo is the text's first n characters.
func upTo(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// excerpt is a line short enough for a sentence.
func excerpt(line string) string {
	const most = 80
	if line = strings.TrimSpace(line); utf8.RuneCountInString(line) > most {
		line = upTo(line, most) + "…"
	}
	return line
}

func postgresError(err error) *pgconn.PgError {
	var pg *pgconn.PgError
	errors.As(err, &pg)
	return pg
}

// sentence is an error in words for the operator; the cause is for code.
type sentence struct {
	text  string
	cause error
}

func (s *sentence) Error() string { return s.text }

func (s *sentence) Unwrap() error { return s.cause }

// described is what PostgreSQL says, with its code, and what it is about. Not the detail: that quotes rows.
func described(ctx context.Context, err error) error {
	pg := postgresError(err)
	if pg == nil {
		if ctx.Err() != nil {
			return &sentence{"the time for it was over", err}
		}
		return err
	}
	text := fmt.Sprintf("%s (SQLSTATE %s)", pg.Message, pg.Code)
	if pg.ConstraintName != "" {
		text += ", constraint " + pg.ConstraintName
	}
	if pg.TableName != "" {
		text += " of table " + pg.TableName
	}
	if inside, _, _ := strings.Cut(pg.Where, "\n"); pg.Position == 0 && strings.HasPrefix(inside, "PL/pgSQL") {
		text += ", in " + inside
	}
	if pg.Hint != "" {
		text += ". Hint: " + strings.TrimSuffix(pg.Hint, ".")
	}
	return &sentence{text, err}
}

// explained is an error of what is beside the migrations in words.
func explained(ctx context.Context, err error) error {
	var said *sentence
	if errors.As(err, &said) || postgresError(err) == nil && ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("the database could not be made ready: %w. Deploy again: it goes on from what the database has", described(ctx, err))
}

// unreachable is an error of connecting, without the password wherever it may come from.
func unreachable(err error, c *pgx.ConnConfig) error {
	if err == nil {
		return nil
	}
	why := err.Error()
	if pg := postgresError(err); pg != nil {
		why = fmt.Sprintf("%s (SQLSTATE %s)", pg.Message, pg.Code)
	} else if inner := errors.Unwrap(err); inner != nil {
		why = inner.Error()
	}
	if c.Password != "" {
		why = strings.ReplaceAll(why, c.Password, "…")
	}
	return &sentence{fmt.Sprintf("the database at %s does not let %s in: %s. Nothing was changed", c.Host, c.User, strings.Join(strings.Fields(why), " ")), err}
}
