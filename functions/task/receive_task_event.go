package task

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/task"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// ReceiveTaskEvent answers POST /integrations/<tracker>/webhook?token=…: it takes a tracker's delivery in, and answers before it is processed. Trackers give up
// after some seconds, and repeat what was not answered with 200.
func ReceiveTaskEvent(env *handler.Env) lambda.Handler {
	db := env.DB()
	receiver := &task.Receiver{DB: db, Secrets: webhook.NewSecrets(db, env.WebhookSecretsKeeper()), Signal: env.Signal()}
	process := env.Invoke("process-task-event")
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		provider, _, _ := strings.Cut(strings.TrimPrefix(r.Path, "/integrations/"), "/")
		received, err := receiver.Receive(ctx, task.Call{Provider: provider, Token: r.Query.Get("token"), Header: r.Header, Body: r.Body})
		if received.Wait > 0 {
			seconds := int((received.Wait + time.Second - 1) / time.Second)
			return handler.Reply{Headers: map[string]string{"Retry-After": strconv.Itoa(seconds)}}, err
		}
		if err != nil {
			return handler.Reply{}, err
		}
		if o := received.Order; o.EventID != "" {
			if err := process(ctx, o); err != nil {
				slog.WarnContext(ctx, "a task tracker's event waits for the sweep", "tenant_id", o.TenantID, "event_id", o.EventID, "error", err)
			}
		}
		headers := map[string]string{}
		for name := range received.Answer {
			headers[name] = received.Answer.Get(name)
		}
		return handler.Reply{Headers: headers, Body: answer{received.Outcome}}, nil
	})
}

type answer struct {
	Outcome integration.Outcome `json:"outcome"`
}
