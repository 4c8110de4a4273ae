package workflow

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// A token says which attempt of which branch it is for, signed: nobody can make one, the engine remembers none, and one whose task is over is known
// for what it is.

const signature = 20 // bytes of the token's HMAC

func (e *Engine) token(run, branch int64, attempt int) string {
	text := binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(nil, run), branch), int64(attempt))
	return base64.RawURLEncoding.EncodeToString(e.sign(text))
}

func (e *Engine) sign(text []byte) []byte {
	mac := hmac.New(sha256.New, e.secret)
	mac.Write(text)
	return append(text[:len(text):len(text)], mac.Sum(nil)[:signature]...)
}

// read is what a token says; ErrNoTask if it was not made here.
func (e *Engine) read(token string) (run, branch, attempt int64, err error) {
	if err := workflow.CheckToken(token); err != nil {
		return 0, 0, 0, err
	}
	signed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(signed) <= signature {
		return 0, 0, 0, about("a token", workflow.ErrNoTask)
	}
	text := signed[:len(signed)-signature]
	if !hmac.Equal(e.sign(text), signed) {
		return 0, 0, 0, about("a token", workflow.ErrNoTask)
	}
	for _, n := range []*int64{&run, &branch, &attempt} {
		read := 0
		*n, read = binary.Varint(text)
		text = text[read:]
	}
	return run, branch, attempt, nil
}

// Succeed implements workflow.Tasks.
func (e *Engine) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	if err := workflow.CheckToken(token); err != nil {
		return err
	}
	data, err := workflow.Data(output)
	if err != nil {
		return err
	}
	return e.answer(ctx, token, &data, nil, nil)
}

// Fail implements workflow.Tasks.
func (e *Engine) Fail(ctx context.Context, token, code, cause string) error {
	code, cause = reason(code, cause)
	return e.answer(ctx, token, nil, &code, &cause)
}

func (e *Engine) answer(ctx context.Context, token string, data, code, cause *string) error {
	err := e.tell(ctx, token, `select local_workflow.answer($1, $2, $3, $4, $5, $6, $7, $8)`, data, code, cause, e.running.Load() == 0)
	if err == nil {
		e.Look()
	}
	return err
}

// Heartbeat implements workflow.Tasks.
func (e *Engine) Heartbeat(ctx context.Context, token string) error {
	return e.tell(ctx, token, `select local_workflow.heartbeat($1, $2, $3, $4)`)
}

func (e *Engine) tell(ctx context.Context, token, sql string, more ...any) error {
	if err := ctx.Err(); err != nil {
		return about("a task", err)
	}
	run, branch, attempt, err := e.read(token)
	if err != nil {
		return err
	}
	open := false
	err = e.ask(ctx, sql, append([]any{run, branch, attempt, e.now()}, more...), func(rows pgx.Rows) error { return rows.Scan(&open) })
	if err == nil && !open {
		err = workflow.ErrTaskOver
	}
	return about("a task", err)
}
