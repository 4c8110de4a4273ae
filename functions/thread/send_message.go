package thread

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/clienttoken"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// SendMessage answers Mutation.sendMessage: the message and its queued turn are committed, then the turn is dispatched.
func SendMessage(env *handler.Env) lambda.Handler {
	db, to, signal := env.DB(), env.Publish(), env.Signal()
	dispatch, answer := env.Invoke("dispatch-turn"), env.Invoke("answer-callbacks")
	type input struct {
		ThreadID string      `json:"threadId"`
		Body     string      `json:"body"`
		OnBusy   turn.OnBusy `json:"onBusy"`
	}
	type args struct {
		Input struct {
			input
			ClientToken *string `json:"clientToken"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (thread.Message, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return thread.Message{}, err
		}
		var asked turn.Asked
		var message thread.Message
		var repeated bool
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			message, repeated, err = clienttoken.Once(ctx, tx, caller, "sendMessage", a.Input.ClientToken, a.Input.input, func() (thread.Message, error) {
				asked, err = turn.Request(ctx, tx, caller.TenantID, turn.Ask{ThreadID: a.Input.ThreadID, Body: a.Input.Body, OnBusy: a.Input.OnBusy, UserID: caller.UserID})
				return asked.Message, err
			})
			return err
		})
		if err != nil || repeated {
			return message, err
		}
		signal("message requested")
		if asked.Callback != "" {
			if err := answer(ctx, callback.Task{TenantID: caller.TenantID, CallbackID: asked.Callback}); err != nil {
				slog.WarnContext(ctx, "the workflow that waits for the turn is told later", "tenant_id", caller.TenantID, "callback_id", asked.Callback, "error", err)
			}
		}
		published := notify.Publish(ctx, to, caller.TenantID, asked.Notices...)
		if err := dispatch(ctx, turn.Dispatch{TenantID: caller.TenantID, TurnID: asked.TurnID, Published: published}); err != nil {
			slog.WarnContext(ctx, "dispatch failed; the reaper tries again", "tenant_id", caller.TenantID, "turn_id", asked.TurnID, "error", err)
		}
		return message, nil
	})
}
