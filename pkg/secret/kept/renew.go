package kept

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/agentplatform/agentplatform/pkg/oauth"
)

// Ask asks for a token with what is kept. An *oauth.Error of the code invalid_grant says that the access is over.
type Ask func(ctx context.Context, v Secret) (oauth.Token, error)

// The times of one renewal: to read and to ask, from before the lease was taken on, and to keep what was answered, from when the lease has its whole time again.
// Each ends some time before the lease.
const (
	askTime  = 45 * time.Second
	keepTime = 15 * time.Second
)

// Fresh is the row's value with an access token that is good, renewed by ask if it must be. version is that of the row; refused is an access token that was not
// taken: another one is asked for. With an error of ask it is the value that was asked with.
func (s *Secrets) Fresh(ctx context.Context, tenantID, row string, version int, refused string, ask Ask) (Secret, error) {
	v, err := s.Get(ctx, tenantID, row, version)
	for err == nil && !good(v, refused) {
		end := time.Now().Add(askTime)
		lease, taken := s.lease(ctx, tenantID, row)
		switch {
		case taken != nil:
			return v, taken
		case lease != nil:
			version = lease.Version
			if v, err = lease.renewed(ctx, end, refused, ask); !errors.Is(err, errLost) {
				return v, err
			}
		case v.Usable(time.Now()) && v.Access != refused:
			return v, nil
		}
		if err := wait(ctx, pause); err != nil {
			return v, err
		}
		v, err = s.Get(ctx, tenantID, row, version)
	}
	return v, err
}

func good(v Secret, refused string) bool { return v.Fresh(time.Now()) && v.Access != refused }

// renewed asks for the token, until the end.
func (l *Lease) renewed(ctx context.Context, end time.Time, refused string, ask Ask) (Secret, error) {
	within, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	v, err := l.secrets.Get(within, l.tenantID, l.row, l.Version)
	if err == nil && !good(v, refused) { // it may have been renewed before the lease was had
		v, err = l.renew(ctx, end, refused, v, ask)
	}
	return v, errors.Join(err, l.Release(ctx, v.Version))
}

// renew gets a token and keeps it. A rotated refresh token that is not kept is lost, so asking with one and keeping what comes outlive the request.
func (l *Lease) renew(ctx context.Context, end time.Time, refused string, v Secret, ask Ask) (Secret, error) {
	if v.RefreshToken != "" {
		ctx = context.WithoutCancel(ctx)
	}
	asking, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	v, token, err := l.ask(asking, v, ask)
	if err != nil {
		if asking.Err() == nil && !oauth.Over(err) && v.Usable(time.Now()) && v.Access != refused {
			slog.Warn("a token could not be renewed early", "table", l.secrets.at.Table, "row", l.row, "tenant_id", l.tenantID, "error", err)
			return v, nil
		}
		return v, err
	}
	next := v
	next.Version, next.Access, next.Obtained, next.Expires = max(v.Version, l.Version)+1, token.Access, time.Now(), token.Expires
	if token.Refresh != "" {
		next.RefreshToken = token.Refresh
	}
	if err := l.keep(ctx, next); err != nil {
		return v, err
	}
	return next, nil
}

// ask asks, and once more where that may help; the value is the one that was asked with last.
func (l *Lease) ask(ctx context.Context, v Secret, ask Ask) (Secret, oauth.Token, error) {
	token, err := ask(ctx, v)
	if v.RefreshToken != "" && oauth.Unknown(err) { // the answer may have had the token that replaces this one: now the server still gives it again
		token, err = ask(ctx, v)
	}
	if oauth.Over(err) { // the store may have given the value before the last, if whoever kept that died before the row said so
		if last, e := l.secrets.Get(ctx, l.tenantID, l.row, l.Version); e == nil && last.RefreshToken != v.RefreshToken {
			v = last
			token, err = ask(ctx, v)
		}
	}
	return v, token, err
}

// keep puts the value, and tries again where that fails.
func (l *Lease) keep(ctx context.Context, v Secret) error {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	for try := 1; ; try++ {
		err := l.Put(within, v)
		if err == nil || errors.Is(err, errLost) || try == 3 || wait(within, pause) != nil {
			return err
		}
	}
}
