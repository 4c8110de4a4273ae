package webhook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

func TestEnter(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	hook := w.create(func(s *webhook.Settings) { s.RateLimit = new(42) })
	sibling, foreign := w.create(), other.create()
	off := w.create(func(s *webhook.Settings) { s.Enabled = new(false) })
	enter := func(id, token string) (webhook.Door, error) { return webhook.Enter(t.Context(), w.db.App, id, token) }

	door, err := enter(hook.ID, hook.Token)
	require.NoError(t, err)
	require.Equal(t, webhook.Door{TenantID: w.TenantID, WebhookID: hook.ID, RateLimit: 42}, door)
	door, err = enter(foreign.ID, foreign.Token)
	require.NoError(t, err)
	require.Equal(t, webhook.Door{TenantID: other.TenantID, WebhookID: foreign.ID, RateLimit: 10}, door)

	_, first := enter(hook.ID, strings.Repeat("x", 32))
	is(t, first, fault.Unauthorized, "no webhook has this id and token")
	for name, c := range map[string][2]string{
		"unknown id":                    {ident.New(), hook.Token},
		"no id":                         {"", hook.Token},
		"an id that is none":            {"orders", hook.Token},
		"SQL":                           {"' or true --", hook.Token},
		"no token":                      {hook.ID, ""},
		"a part of the token":           {hook.ID, hook.Token[:31]},
		"more than the token":           {hook.ID, hook.Token + "x"},
		"the masked token":              {hook.ID, w.get(hook.ID).Token},
		"a very long token":             {hook.ID, strings.Repeat("x", 1<<20)},
		"a token with NUL":              {hook.ID, hook.Token + "\x00"},
		"its hash":                      {hook.ID, string(query[[]byte](w, `select token_hash from webhooks where id = $1`, hook.ID))},
		"another webhook's token":       {hook.ID, sibling.Token},
		"another tenant's token":        {hook.ID, foreign.Token},
		"the token at another tenant's": {foreign.ID, hook.Token},
		"disabled, with a wrong token":  {off.ID, hook.Token},
	} {
		_, err := enter(c[0], c[1])
		require.Same(t, first, err, name)
	}
	_, err = enter(off.ID, off.Token)
	is(t, err, fault.Forbidden, "disabled")
	require.NotContains(t, query[string](w, `select w::text from webhooks w where id = $1`, hook.ID), hook.Token)
}

// One webhook has one name in the rate limit's window, however its id is written.
func TestEnterKnowsAWebhookInAnySpelling(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	door, err := webhook.Enter(t.Context(), w.db.App, strings.ToUpper(hook.ID), hook.Token)
	require.NoError(t, err)
	require.Equal(t, hook.ID, door.WebhookID)
}
