package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/workflow"
	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// engine remembers what its tasks were told, by their tokens.
type engine struct {
	workflow.Engine
	told map[string]string
	down error
}

func (e *engine) Succeed(_ context.Context, token string, output json.RawMessage) error {
	if e.down == nil {
		e.told[token] = string(output)
	}
	return e.down
}

// An invocation names one callback; the clock's event names none, and is the sweep.
func TestAnswerCallbacks(t *testing.T) {
	e := &engine{told: map[string]string{}}
	p := handlertest.New(t).WithWorkflow(e)
	w := p.DB.World(t, "acme")
	due := func(token string) (id string) {
		require.NoError(t, p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
			added, err := callback.Add(t.Context(), tx, callback.Callback{TenantID: w.TenantID, Token: token})
			if err != nil {
				return err
			}
			id = added.ID
			return callback.Answer(t.Context(), tx, id, json.RawMessage(`"`+token+`"`))
		}))
		return id
	}
	call := func(payload any) error {
		body, err := json.Marshal(payload)
		require.NoError(t, err)
		_, err = functions.AnswerCallbacks(p.Env(t, "answer-callbacks")).Invoke(t.Context(), body)
		return err
	}
	one := due("one")
	due("two")
	e.down = errors.New("no answer")
	require.Error(t, call(callback.Task{TenantID: w.TenantID, CallbackID: one}), "so that it is called again")
	e.down = nil
	require.NoError(t, call(callback.Task{TenantID: w.TenantID, CallbackID: one}))
	require.Equal(t, map[string]string{"one": `"one"`}, e.told)
	require.NoError(t, call(map[string]any{"id": "event", "detail-type": "Scheduled Event"}))
	require.Equal(t, map[string]string{"one": `"one"`, "two": `"two"`}, e.told)
}
