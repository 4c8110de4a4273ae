// Package device is the phones and tablets that people are told of their tasks on.
//
// What holds:
//
//   - A device has one owner at a time, over all tenants: it is who registered it last. Whoever has a device's token has the device, so a person who signs in
//     on another's phone takes it over, and the other, also of another tenant, hears nothing there any more. Of that tenant no more is seen than that an
//     endpoint was its, by a lookup function of the database; the row is then taken away in a transaction of that tenant.
//   - A user has at most Most devices. The one that was not seen for the longest time makes room: an app registers at each of its starts, so that is one
//     that nobody uses, and a person who has changed phones often is not locked out.
//   - The push service is asked first and the row is written after it. Who dies in between leaves an endpoint that nobody sends to.
//   - The token is the push service's to keep: no row, answer or log has it.
package device

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Most is how many devices a user has at the most.
const Most = 20

// Device is a device as the API shows it.
type Device struct {
	ID        string     `json:"id"`
	Platform  Platform   `json:"platform"`
	CreatedAt ident.Time `json:"createdAt"`
	SeenAt    ident.Time `json:"seenAt"` // when it was registered last

	endpoint string // of the push service
}

// Platform is who delivers to a device, as the API spells it: apns_sandbox for apns-sandbox.
type Platform string

func (p Platform) pushed() push.Platform {
	return push.Platform(strings.ReplaceAll(string(p), "_", "-"))
}

const columns = `id, replace(platform, '-', '_'), created_at, seen_at, endpoint`

func scan(row pgx.CollectableRow) (d Device, err error) {
	err = row.Scan(&d.ID, &d.Platform, &d.CreatedAt, &d.SeenAt, &d.endpoint)
	return d, err
}

// Cursor is the sort key of the list.
type Cursor struct{ ID string }

// Cursor is d's place in the list.
func (d Device) Cursor() Cursor { return Cursor{d.ID} }

// List is up to limit devices of a user, the oldest first, after the cursor.
func List(ctx context.Context, q postgres.Querier, userID string, after *Cursor, limit int) ([]Device, error) {
	var id *string
	if after != nil {
		id = &after.ID
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from devices where user_id = $1 and ($2::uuid is null or id > $2) order by id limit $3`, userID, id, limit)
}

// Devices are the devices of all tenants, to be changed. It is safe for concurrent use.
type Devices struct {
	DB   *postgres.DB
	Push *push.Pusher
}

// tries is how often a device is taken over from another tenant, whose user registers it at the same moment.
const tries = 5

// errElsewhere: the endpoint is another tenant's, each time that this one looks.
var errElsewhere = fault.Invalid("the device is being registered by somebody else: try again")

// Register makes the device with this token the caller's, whoever's it was.
func (s Devices) Register(ctx context.Context, c tenant.Caller, p Platform, token string) (Device, error) {
	endpoint, err := s.Push.Register(ctx, p.pushed(), token, c.TenantID+" "+c.UserID)
	if err != nil {
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			return Device{}, f
		}
		return Device{}, err
	}
	for range tries {
		d, gone, err := s.take(ctx, c, p, endpoint)
		switch {
		case err == nil:
			s.leave(ctx, c.TenantID, gone)
			return d, nil
		case !errors.Is(err, errElsewhere):
			return Device{}, err
		}
		if err := s.evict(ctx, endpoint); err != nil {
			return Device{}, err
		}
	}
	return Device{}, errElsewhere
}

// take writes the row, and takes away those that are too many: their endpoints are answered.
func (s Devices) take(ctx context.Context, c tenant.Caller, p Platform, endpoint string) (d Device, gone []string, err error) {
	err = s.DB.InTenant(ctx, c.TenantID, func(tx pgx.Tx) error {
		// Whoever registers for the same user waits here, so that two cannot pass the bound together; a user who is deleted meanwhile has no devices.
		users, err := postgres.All(ctx, tx, pgx.RowTo[string], `select id from users where id = $1 for no key update`, c.UserID)
		if err != nil {
			return err
		}
		if len(users) == 0 {
			return fault.Missing("user")
		}
		var b pgx.Batch
		at := ident.Now()
		b.Queue(`insert into devices (tenant_id, id, user_id, platform, endpoint, created_at, seen_at) values ($1, $2, $3, $4, $5, $6, $6) on conflict (endpoint) do nothing`,
			c.TenantID, ident.New(), c.UserID, p.pushed(), endpoint, at)
		// Another user's device is a new one: nothing that was his is known by its id.
		b.Queue(`update devices set id = case user_id when $2 then id else $3 end, created_at = case user_id when $2 then created_at else $4 end, user_id = $2, seen_at = $4
			where endpoint = $1`, endpoint, c.UserID, ident.New(), at)
		b.Queue(`select `+columns+` from devices where endpoint = $1`, endpoint).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, scan)
			if len(found) > 0 {
				d = found[0]
			}
			return err
		})
		b.Queue(`delete from devices where id in (select id from devices where user_id = $1 order by endpoint = $2 desc, seen_at desc, id desc offset $3) returning endpoint`,
			c.UserID, endpoint, Most).Query(func(rows pgx.Rows) error {
			gone, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		if d.ID == "" {
			return errElsewhere
		}
		return nil
	})
	return d, gone, err
}

// whose is the tenant that has the endpoint, if one has.
func (s Devices) whose(ctx context.Context, endpoint string) ([]string, error) {
	return postgres.All(ctx, s.DB.Lookup(), pgx.RowTo[string], `select tenant_id from lookup_device($1)`, endpoint)
}

// evict takes the endpoint from the tenant that has it.
func (s Devices) evict(ctx context.Context, endpoint string) error {
	tenants, err := s.whose(ctx, endpoint)
	for _, id := range tenants {
		var b pgx.Batch
		b.Queue(`delete from devices where endpoint = $1`, endpoint)
		err = errors.Join(err, s.DB.Once(ctx, id, &b))
	}
	return err
}

// leave has the push service forget endpoints that nobody sends to any more: whoever has registered the device meanwhile keeps it. What it misses lies there,
// and does no harm.
func (s Devices) leave(ctx context.Context, tenantID string, endpoints []string) {
	for _, endpoint := range endpoints {
		owners, err := s.whose(ctx, endpoint)
		if err == nil && len(owners) == 0 {
			err = s.Push.Unregister(ctx, endpoint)
		}
		if err != nil {
			slog.WarnContext(ctx, "the push service keeps a device that is none any more", "tenant_id", tenantID, "error", err)
		}
	}
}

// Unregister takes one of the caller's devices away. It is answered as it was.
func (s Devices) Unregister(ctx context.Context, c tenant.Caller, id string) (d Device, err error) {
	if !ident.Valid(id) {
		return d, fault.Missing("device")
	}
	err = s.DB.InTenant(ctx, c.TenantID, func(tx pgx.Tx) error {
		d, err = postgres.One(ctx, tx, "device", scan, `delete from devices where id = $1 and user_id = $2 returning `+columns, id, c.UserID)
		return err
	})
	if err == nil {
		s.leave(ctx, c.TenantID, []string{d.endpoint})
	}
	return d, err
}
