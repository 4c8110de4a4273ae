package compliance

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
)

// maxPage bounds an answer, in bytes: Lambda's limit is 6 MB. A page of large payloads ends early.
const maxPage = 4 << 20

// eventCursor is a place in the list. It carries the beginning of the default window, so that the pages of one list share it.
type eventCursor struct {
	trail.Cursor
	From ident.Time `json:"f"`
}

// ComplianceEvents answers Query.complianceEvents.
func ComplianceEvents(env *handler.Env) lambda.Handler {
	db, operators, key := env.Reader(), env.Operators(), env.PageKey()
	type args struct {
		Filter trail.Filter `json:"filter"`
		page.Request
	}
	return handler.Resolver(func(ctx context.Context, a args) (page.Page[event], error) {
		none := page.Page[event]{}
		if _, err := operators.Check(ctx); err != nil {
			return none, err
		}
		asked, err := a.Filter.Check()
		if err != nil {
			return none, err
		}
		size, after, err := page.Start[eventCursor](key, a.Request, "complianceEvents", asked)
		if err != nil {
			return none, err
		}
		filter, behind := asked.Since(ident.Now()), (*trail.Cursor)(nil)
		if after != nil {
			filter.From, behind = &after.From, &after.Cursor
		}
		var items []event
		err = db.Unbound(ctx, func(tx pgx.Tx) error {
			items, size, err = readPage(ctx, tx, filter, behind, size)
			return err
		})
		if err != nil {
			return none, err
		}
		return page.Cut(key, items, size, func(e event) eventCursor {
			return eventCursor{trail.Cursor{OccurredAt: e.OccurredAt, EventID: e.EventID}, *filter.From}
		}, "complianceEvents", asked), nil
	})
}

// readPage reads a page and the event behind it, if there is one; fits is how many belong to the page.
func readPage(ctx context.Context, tx pgx.Tx, filter trail.Filter, after *trail.Cursor, size int) (items []event, fits int, err error) {
	anchored, err := trail.Anchored(ctx, tx)
	if err != nil {
		return nil, 0, err
	}
	bytes := 0
	for e, err := range trail.List(ctx, tx, filter, after, size+1) {
		if err != nil {
			return nil, 0, err
		}
		item := show(&e, anchored)
		text, err := json.Marshal(item)
		if err != nil {
			return nil, 0, err
		}
		items = append(items, item)
		if bytes += len(text); bytes > maxPage && len(items) > 1 {
			return items, len(items) - 1, nil
		}
	}
	return items, size, nil
}
