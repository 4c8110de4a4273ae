package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// firstTenant is the event: the deployment's variable of that name.
type firstTenant struct {
	Slug       string `json:"slug"`
	Name       string `json:"name"`
	OwnerEmail string `json:"ownerEmail"`
}

// howTo is how the variable is written.
const howTo = `first_tenant = { slug = "acme", name = "Acme Inc.", owner_email = "ada@acme.example" }`

type bootstrapped struct {
	Made     bool   `json:"made"`
	TenantID string `json:"tenantId,omitempty"` // of the tenant with that slug
	Message  string `json:"message"`
}

// platform is the actor of what the platform does by itself.
const platform = "platform"

// bootstrapLock is the advisory lock of deployments that make the first tenant at once: the bytes "firstten".
const bootstrapLock int64 = 0x666972737474656e

// Bootstrap makes the first tenant and its owner. Each deployment calls it: where there is a tenant already, it changes nothing.
func Bootstrap(env *handler.Env) lambda.Handler {
	db, reader, o, directory, model := env.DB(), env.Reader(), env.Outbox(), env.Identity(), env.DefaultModel()
	return handler.Trigger(func(ctx context.Context, event json.RawMessage) (answer bootstrapped, err error) {
		first, err := readFirstTenant(event)
		if err != nil {
			return bootstrapped{}, err
		}
		if first == (firstTenant{}) {
			return bootstrapped{Message: "no first tenant is asked for: nothing was done. To have one made, set " + howTo + " and deploy again"}, nil
		}
		owner, err := user.CheckEmail("owner_email", first.OwnerEmail)
		if err != nil {
			return bootstrapped{}, explain(err)
		}
		id := ident.New()
		err = o.InTenant(ctx, db, id, func(tx pgx.Tx) error {
			// One after the other: whoever waits sees what the one before has committed.
			if _, err := tx.Exec(ctx, `set local lock_timeout = '60s'; select pg_advisory_xact_lock(`+fmt.Sprint(bootstrapLock)+`)`); err != nil {
				return err
			}
			var there bool
			if answer, there, err = find(ctx, reader, first.Slug); err != nil || there {
				return err
			}
			opened, err := user.Open(ctx, tx, user.Opening{
				Founding: user.Founding{TenantID: id, Slug: first.Slug, Name: first.Name, Agent: agent.Default{ModelID: model}},
				Owner:    owner, By: platform, Platform: true, Outbox: o, Directory: directory})
			answer = bootstrapped{true, opened.ID, fmt.Sprintf("the tenant %s was made, and its owner %s is invited", opened.Slug, owner)}
			return err
		})
		if err != nil {
			return bootstrapped{}, explain(err)
		}
		slog.InfoContext(ctx, answer.Message)
		return answer, nil
	})
}

// readFirstTenant reads the event; nothing, null and {} are the zero value.
func readFirstTenant(event json.RawMessage) (f firstTenant, err error) {
	decoder := json.NewDecoder(bytes.NewReader(event))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return firstTenant{}, fmt.Errorf("first_tenant is not what it should be (%w). Write it so: %s", err, howTo)
	}
	return f, nil
}

// find says which tenant stands in the way of making that first one, if there is any: itself, or another.
func find(ctx context.Context, reader *postgres.DB, slug string) (answer bootstrapped, there bool, err error) {
	var other string
	err = reader.Unbound(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select slug, id from tenants order by slug = $1 desc, created_at, id limit 1`, slug).Scan(&other, &answer.TenantID)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return bootstrapped{}, false, nil
	case err != nil:
		return bootstrapped{}, false, err
	case other == slug:
		answer.Message = fmt.Sprintf("the tenant %s is there already: nothing was changed", slug)
		return answer, true, nil
	}
	return bootstrapped{Message: fmt.Sprintf("there is a tenant already (%s), so %s is not the first one: nothing was changed. A platform operator makes further tenants, by createTenant",
		other, slug)}, true, nil
}

// explain is an error in a sentence for whoever deploys.
func explain(err error) error {
	var refused *fault.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("first_tenant cannot be made: %w. Write it so: %s", err, howTo)
	}
	return fmt.Errorf("the first tenant was not made, and nothing of it is in the database: %w. Deploy again when that is mended: an invitation that went out is sent anew", err)
}
