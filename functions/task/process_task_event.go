package task

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/task"
)

// ProcessTaskEvent puts a tracker's event into its task's thread, and tells people's devices; called on time, all events that are due.
func ProcessTaskEvent(env *handler.Env) lambda.Handler {
	db := env.DB()
	clients := connection.NewClients(db, env.IntegrationSecretsReader())
	processor := &task.Processor{DB: db, Connections: connection.New(db, env.ConnectionSecrets(), clients, env.Egress()), Publish: env.Publish(), Push: env.Push(),
		Signal: env.Signal()}
	return handler.Task(processor.Process)
}
