package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/mail"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/mail"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestSendEmail(t *testing.T) {
	dir := t.TempDir()
	sent, err := outbox.Open(outbox.Config{Dir: dir})
	require.NoError(t, err)
	p := handlertest.New(t).WithMail("agents@acme.test", sent)
	db := p.DB
	acme, other := db.World(t, "acme"), db.World(t, "umbrella")
	_, err = db.Superuser(t).Exec(t.Context(), `update users set email = case tenant_id when $1 then 'Ada@acme.test' else 'eve@umbrella.test' end`, acme.TenantID)
	require.NoError(t, err)
	send := tool.SendEmail(db.App, functions.SendMail(p.Env(t, "send-mail")).Invoke)
	require.False(t, send.Idempotent, "a mail cannot be taken back")
	run := func(tenantID, input string) error {
		if err := send.Check(json.RawMessage(input)); err != nil {
			return err
		}
		_, err := send.Run(t.Context(), tool.Call{TenantID: tenantID, Input: json.RawMessage(input)})
		return err
	}
	require.NoError(t, run(acme.TenantID, `{"to":["ada@ACME.test"],"subject":"Grüße","text":"Hallo"}`))
	mails, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	require.NoError(t, err)
	require.Len(t, mails, 1)
	f, err := os.Open(mails[0])
	require.NoError(t, err)
	defer f.Close()
	m, err := mail.ReadMessage(f)
	require.NoError(t, err)
	require.Equal(t, "<agents@acme.test>", m.Header.Get("From"))

	for input, want := range map[string]string{
		`{"to":["eve@umbrella.test"],"subject":"s","text":"t"}`:                         "eve@umbrella.test is no user of this organisation",
		`{"to":["ada@acme.test","mallory@example.com"],"subject":"s","text":"t"}`:       "mallory@example.com is no user of this organisation",
		`{"to":[],"subject":"s","text":"t"}`:                                            "input: ",
		`{"to":["ada@acme.test"],"subject":"s\r\nBcc: mallory@example.com","text":"t"}`: "subject",
		`{"to":["ada@acme.test"],"subject":"s","text":"t","from":"ceo@acme.test"}`:      "input: ",
		`{"to":["ada@acme.test, mallory@example.com"],"subject":"s","text":"t"}`:        "is no user of this organisation",
	} {
		err := run(acme.TenantID, input)
		require.Equal(t, fault.ValidationError, fault.From(err).Type, input)
		require.ErrorContains(t, err, want, input)
	}
	require.Error(t, run(other.TenantID, `{"to":["ada@acme.test"],"subject":"s","text":"t"}`), "another tenant's user")
	_, err = db.Superuser(t).Exec(t.Context(), `update users set status = 'disabled'`)
	require.NoError(t, err)
	require.Error(t, run(acme.TenantID, `{"to":["ada@acme.test"],"subject":"s","text":"t"}`))
	mails, err = filepath.Glob(filepath.Join(dir, "*.eml"))
	require.NoError(t, err)
	require.Len(t, mails, 1)
}

// What the function answers is told, and only what it answered: after anything else the mail may be on its way.
func TestSendEmailSaysWhatBecameOfIt(t *testing.T) {
	db := pgtest.New(t)
	w := db.World(t, "acme")
	_, err := db.Superuser(t).Exec(t.Context(), `update users set email = 'ada@acme.test'`)
	require.NoError(t, err)
	const unknown = "it is not known whether the mail was sent: do not send it again before a person has looked"
	for name, c := range map[string]struct {
		answer string
		fails  error
		want   string // of the error; empty: none
		as     fault.Type
	}{
		"sent":           {answer: `{"data":{"messageId":"<1@x>"}}`},
		"refused":        {answer: `{"errorType":"ValidationError","message":"not accepted"}`, want: "not accepted", as: fault.ValidationError},
		"throttled":      {answer: `{"errorType":"RateLimitExceeded","message":"later"}`, want: "later", as: fault.RateLimitExceeded},
		"failed":         {answer: `{"errorType":"InternalError","message":"internal error"}`, want: unknown, as: fault.InternalError},
		"not reached":    {fails: errors.New("connection reset"), want: unknown, as: fault.InternalError},
		"too slow":       {fails: context.DeadlineExceeded, want: unknown, as: fault.InternalError},
		"no answer":      {answer: `{}`, want: unknown, as: fault.InternalError},
		"no JSON at all": {answer: `Task timed out`, want: unknown, as: fault.InternalError},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			send := tool.SendEmail(db.App, func(_ context.Context, payload []byte) ([]byte, error) {
				asked++
				require.JSONEq(t, `{"tenantId":"`+w.TenantID+`","turnId":"t","to":["ada@acme.test"],"subject":"s","text":"x"}`, string(payload))
				return []byte(c.answer), c.fails
			})
			got, err := send.Run(t.Context(), tool.Call{TenantID: w.TenantID, TurnID: "t", Input: json.RawMessage(`{"to":["ada@acme.test"],"subject":"s","text":"x"}`)})
			require.Equal(t, 1, asked, "whatever comes of it")
			if c.want == "" {
				require.NoError(t, err)
				text, err := json.Marshal(got)
				require.NoError(t, err)
				require.JSONEq(t, `{"messageId":"<1@x>"}`, string(text))
				return
			}
			require.Equal(t, c.as, fault.From(err).Type)
			require.Equal(t, c.want, fault.From(err).Message)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "or it would be told as a tool that took too long")
		})
	}
}
