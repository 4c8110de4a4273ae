package integration

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

// DeliverReplies posts what agents have said in a thread where its conversation is; called on time, in all threads.
func DeliverReplies(env *handler.Env) lambda.Handler {
	courier := &integration.Courier{DB: env.DB(), Secrets: integration.NewSecrets(env.IntegrationSecretsReader()), Client: egress.New(env.Egress()),
		Mail: env.Call("send-mail"), Signal: env.Signal()}
	return handler.Task(courier.Deliver)
}
