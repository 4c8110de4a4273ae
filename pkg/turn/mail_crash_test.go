package turn_test

import (
	"context"
	"encoding/json"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

const victimOutbox = "TURN_VICTIM_OUTBOX" // where the victim's mails end; it kills itself as soon as one is sent

// outboxSends is send-mail over an outbox; then is called once a mail is in it.
func outboxSends(dir string, then func()) invoke.Function {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		o, err := outbox.Open(outbox.Config{Dir: dir})
		if err != nil {
			return nil, err
		}
		var order mail.Order
		if err := json.Unmarshal(payload, &order); err != nil {
			return nil, err
		}
		id, err := mail.New(o).Send(ctx, mail.Message{From: mail.Address{Address: "agents@acme.test"}, To: order.To, Subject: order.Subject, Text: order.Text})
		if err != nil {
			return nil, err
		}
		then()
		return json.Marshal(map[string]any{"data": mail.Sent{MessageID: id}})
	}
}

func victimsMail(db *postgres.DB) []tool.Tool {
	dir := os.Getenv(victimOutbox)
	if dir == "" {
		return nil
	}
	return []tool.Tool{tool.SendEmail(db, outboxSends(dir, func() {
		check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}))}
}

// A process that is killed between a mail's sending and its result leaves one mail: whoever takes the turn over tells the model that nobody knows, and sends none.
func TestKilledWhileAMailIsOnItsWay(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, nil)
	runner, stop := offlineRunner(w.db.App, w.events)
	defer stop()
	sent := 0
	runner.Tools = runner.Tools.With([]tool.Tool{tool.SendEmail(w.db.App, outboxSends(dir, func() { sent++ }))})
	w.runner = runner
	w.grant("send_email", "")
	_, err := w.db.Superuser(t).Exec(t.Context(), `update users set email = 'ada@acme.test'`)
	require.NoError(t, err)
	th := w.open()
	const call = `/tool send_email {"to":["ada@acme.test"],"subject":"Hello","text":"Once."}`

	asked := w.ask(th.ID, call)
	t.Setenv(victimOutbox, dir)
	killed, _ := w.kill(asked.TurnID, 1000) // a point that no turn reaches: the mail is what kills
	require.True(t, killed)
	require.NoError(t, os.Unsetenv(victimOutbox))
	require.Len(t, mails(t, dir), 1)
	w.expireLeases()
	w.run(asked.TurnID)

	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Succeeded, record.Status)
	require.Len(t, record.ToolOutcomes, 1)
	require.Equal(t, thread.ToolError, record.ToolOutcomes[0].Status)
	require.Equal(t, "interrupted, outcome unknown", *record.ToolOutcomes[0].Error)
	require.Len(t, mails(t, dir), 1)
	require.Zero(t, sent, "the second attempt sends nothing")

	w.run(w.ask(th.ID, call).TurnID)
	require.Equal(t, 1, sent)
	require.Len(t, mails(t, dir), 2)
}

func mails(t *testing.T, dir string) []outbox.Entry {
	t.Helper()
	o, err := outbox.Open(outbox.Config{Dir: dir})
	require.NoError(t, err)
	entries, _, err := o.List("", outbox.MaxPage)
	require.NoError(t, err)
	return entries
}
