package compliance_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
)

// What no payload may carry to any place where it can be read: the value of a field that is not listed, and a secret in one that is.
const (
	unlisted = "unlisted-value"
	password = "hunter2hunter2"
	kept     = "listed-value" // that one look is not at nothing
)

// hostile is a payload of this type: its own fields with a secret among them, and others, at any depth.
func hostile(t *rapid.T, typ audit.Type) map[string]any {
	name := rapid.StringMatching(`[a-zA-Z_.\-]{1,12}`)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			if depth > 0 && rapid.Bool().Draw(t, "deeper") {
				return rapid.OneOf(rapid.Map(rapid.SliceOfN(value(depth-1), 1, 3), func(l []any) any { return l }),
					rapid.Map(rapid.MapOfN(name, value(depth-1), 1, 3), func(m map[string]any) any { return m })).Draw(t, "nested")
			}
			return unlisted + rapid.String().Draw(t, "text")
		})
	}
	payload := map[string]any{}
	for _, field := range typ.Fields() {
		switch rapid.IntRange(0, 3).Draw(t, field) {
		case 0:
			payload[field] = kept + " password=" + password
		case 1:
			payload[field] = []any{kept, "Authorization: Bearer " + password}
		case 2:
			payload[field] = "https://x.test/" + kept + "?token=" + password
		}
	}
	for field, v := range rapid.MapOfN(name, value(3), 1, 5).Draw(t, "others") {
		if !slices.Contains(typ.Fields(), field) {
			payload[field] = v
		}
	}
	return payload
}

// TestNoUnlistedKeyGoesAnywhere: whatever the payloads are, neither outbox, chain, write-once bucket, exported file nor log has a value of a field that is not listed,
// or a secret out of one that is.
func TestNoUnlistedKeyGoesAnywhere(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	c := newConsole(t).withBuckets()
	env := c.Env(t, "publish-anchor")
	outbox := c.Env(t, "create-compliance-export").Outbox()

	places := map[string]*strings.Builder{}
	put := func(place, text string) {
		if places[place] == nil {
			places[place] = &strings.Builder{}
		}
		places[place].WriteString(text + "\n")
	}
	rapid.Check(t, func(rt *rapid.T) {
		require.NoError(rt, outbox.InTenant(c.acme.Context, c.DB.App, c.acme.TenantID, func(tx pgx.Tx) error {
			for _, typ := range audit.Types() {
				if typ.Recorded() {
					if err := outbox.Record(c.acme.Context, tx, audit.Event{Type: typ, Payload: hostile(rt, typ)}); err != nil {
						return err
					}
				}
			}
			return nil
		}))
	})
	rows := func(place, query string) {
		found, err := c.DB.Superuser(t).Query(t.Context(), query)
		require.NoError(t, err)
		texts, err := pgx.CollectRows(found, pgx.RowTo[string])
		require.NoError(t, err)
		for _, text := range texts {
			put(place, text)
		}
	}
	rows("outbox", `select o::text from audit_outbox o`)
	now := time.Now()
	l := ledger.New(ledger.Config{DB: env.Ledger(), Bucket: env.Audit(), Signer: env.Sign(), Key: []byte(handlertest.EmissionKey), Origin: handlertest.Origin,
		Now: func() time.Time { return now }})
	require.NoError(t, l.Drain(t.Context()))
	now = now.Add(15 * time.Minute)
	require.NoError(t, l.PublishAnchor(t.Context()))
	rows("chain", `select e::text from audit_events e`)
	for object, err := range env.Audit().Versions(t.Context(), anchor.EventPrefix, "") {
		require.NoError(t, err)
		body, _, err := env.Audit().Open(t.Context(), object.Key, object.ID)
		require.NoError(t, err)
		text, err := io.ReadAll(body)
		require.NoError(t, err)
		require.NoError(t, body.Close())
		put("event logs", string(text))
	}
	for _, format := range []string{"CSV", "NDJSON"} {
		job, refused := c.create(operator, fields{"format": format, "filter": fields{"tenantId": c.acme.TenantID}})
		require.Nil(t, refused)
		c.runs(fmt.Sprintf(`{"jobId":%q}`, job["id"]))
		link, refused := c.link(job["id"])
		require.Nil(t, refused)
		_, file, _ := fetch(t, link["url"].(string))
		put(format, file)
	}
	page := must[eventPage](c, "compliance-events", compliance.ComplianceEvents, fields{"limit": 100})
	put("API", fmt.Sprint(page.Items))
	put("log", log.String())

	require.Len(t, places, 7)
	for place, b := range places {
		text := b.String()
		require.NotContains(t, text, unlisted, place)
		require.NotContains(t, text, password, place)
		if place != "log" {
			require.Contains(t, text, kept, place)
		}
	}
}
