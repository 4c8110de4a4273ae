package handlertest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
)

// Recorded is an event in the outbox: its envelope, with the payload read.
type Recorded struct {
	audit.Envelope
	Payload map[string]any
}

// Recorded are the events that are not yet drained, of all tenants and in their order, as the ledger's writer sees them.
func (p *Platform) Recorded(t testing.TB) []Recorded {
	t.Helper()
	rows, err := p.DB.Connect(t, p.DB.LedgerURL).Query(t.Context(), `select envelope from audit_outbox where state = 'pending' order by position`)
	require.NoError(t, err)
	defer rows.Close()
	var all []Recorded
	for rows.Next() {
		var text []byte
		require.NoError(t, rows.Scan(&text))
		e, err := audit.ParseEnvelope(text)
		require.NoError(t, err)
		r := Recorded{Envelope: e}
		require.NoError(t, json.Unmarshal(e.Payload, &r.Payload))
		all = append(all, r)
	}
	require.NoError(t, rows.Err())
	return all
}

// BreakOutbox makes every recording fail from here on, and gives a function that undoes that.
func (p *Platform) BreakOutbox(t testing.TB) (repair func()) {
	t.Helper()
	super := p.DB.Superuser(t)
	change := func(sql string) {
		_, err := super.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	const columns = `insert (tenant_id, event_id, envelope, mac, body_hash) on audit_outbox`
	change(`revoke ` + columns + ` from agentplatform_app`)
	return func() { change(`grant ` + columns + ` to agentplatform_app`) }
}
