package local

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/local/realtime"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/push"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/agentplatform/agentplatform/pkg/trace"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// ports are the local adapters.
func (p *Platform) ports(hub *realtime.Hub) *handler.Ports {
	return &handler.Ports{
		DB:                 func() *postgres.DB { return p.database.app },
		Reader:             func() *postgres.DB { return p.database.reader },
		Model:              func() model.Model { return p.model },
		Guardrail:          func() guardrail.Guard { return p.model.guard() },
		Publish:            func() publish.Publisher { return hub },
		Invoke:             func() invoke.Invoker { return p.queue },
		Call:               func() invoke.Caller { return caller{p} },
		Mail:               func() *mail.Mailer { return mail.New(p.sent) },
		MailFrom:           func() string { return mailFrom },
		MailDomain:         func() string { return mailDomain },
		Runtimes:           func() agentcore.Runtimes { return p.runtimes(hub) },
		Sandbox:            func() sandbox.Sandbox { return p.scripts },
		ToolSecrets:        func() secret.Store { return p.kept[tools].store },
		IntegrationSecrets: func() secret.Store { return p.kept[integrations].store },
		ConnectionSecrets:  func() secret.Store { return p.kept[connections].store },
		Push:               func() *push.Pusher { return push.New(p.sent) },
		Clock:              func() clock.Clock { return p.clock },
		Workflow:           func() workflow.Engine { return p.engine },
		Egress:             func() egress.Config { return egress.Config{Loopback: true} },
		Operators:          p.Operators,
		PageKey:            func() page.Key { return page.Key(p.secrets.get("PAGE_TOKEN_KEY")) },
		Ledger:             func() *postgres.DB { return p.database.ledger },
		EmissionKey:        func() []byte { return []byte(p.secrets.get("AUDIT_EMISSION_KEY")) },
		Sign:               func() sign.Signer { return p.signer },
		Anchoring: func() handler.Anchoring {
			return handler.Anchoring{Interval: p.config.AnchorInterval, Retention: anchorRetention, Origin: anchorOrigin,
				WitnessURL: p.config.WitnessURL, WitnessKey: p.config.WitnessKey}
		},
		Audit:        func() *object.Bucket { return p.store().In(anchorBucket) },
		Exports:      func() *object.Bucket { return p.store().In(exportsBucket) },
		Received:     func() *object.Bucket { return p.store().In(mailBucket) },
		Identity:     func() identity.Directory { return p.pool },
		APISecret:    func() string { return p.secrets.get("API_AUTH_SECRET") },
		DefaultModel: p.modelID,
		FunctionName: func(name string) string { return functionPrefix + name },
		Signal:       p.config.Signal,
	}
}

// store is the platform's own access to object storage.
func (p *Platform) store() *object.Store {
	return object.New(object.Config{Region: region, Endpoint: p.objects.Endpoint(), AccessKey: accessKey, Secret: p.secrets.get("S3_ROOT_SECRET"), PathStyle: true})
}

// modelPort is the real Bedrock client, whatever answers it: the offline model on a port of its own, another endpoint, or AWS.
type modelPort struct {
	model.Model
	bedrock  *bedrock.Client
	offline  *listener // nil: not ours
	endpoint string    // where it speaks Bedrock's wire format; empty: at AWS
}

// defaultBedrockModel is what MODEL=bedrock asks for when nobody says otherwise.
const defaultBedrockModel = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"

func (p *Platform) modelID() string {
	switch {
	case p.config.ModelID != "":
		return p.config.ModelID
	case p.config.Model == Bedrock:
		return defaultBedrockModel
	}
	return offline.ModelID
}

func openModel(ctx context.Context, c Config) (*modelPort, error) {
	settings := bedrock.Config{Region: region, Endpoint: c.BedrockEndpoint}
	m := &modelPort{Model: c.Converse}
	switch {
	case m.Model != nil:
		return m, nil
	case c.Model == Bedrock:
		aws, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, err
		}
		if settings.Credentials = aws.Credentials; aws.Region != "" {
			settings.Region = aws.Region
		}
		if _, err := aws.Credentials.Retrieve(ctx); err != nil {
			return nil, errors.New("MODEL=bedrock needs AWS credentials; sign in with the aws CLI or set AWS_PROFILE, or leave MODEL out for the offline model")
		}
	case c.BedrockEndpoint == "":
		l, err := newListener(0, "")
		if err != nil {
			return nil, err
		}
		l.serve(offline.New(offline.Config{}), make(chan error, 1))
		m.offline, settings.Endpoint = l, l.url("http")
	}
	var err error
	if m.bedrock, err = bedrock.New(settings); err != nil {
		return nil, errors.Join(err, m.close())
	}
	m.endpoint = settings.Endpoint
	m.Model = model.Traced(model.NewRetry(m.bedrock, model.RetryConfig{Log: slog.Default()}), trace.Bedrock)
	return m, nil
}

// guard asks the guardrails of whatever answers the model's calls; nil where that is no Bedrock.
func (m *modelPort) guard() guardrail.Guard {
	if m.bedrock == nil {
		return nil
	}
	return bedrock.NewGuard(bedrock.Guard{Client: m.bedrock, Log: slog.Default()})
}

func (m *modelPort) close() error {
	if m.bedrock != nil {
		m.bedrock.Close()
	}
	if m.offline == nil {
		return nil
	}
	return m.offline.server.Close() // whoever still asks belongs to a turn that has ended
}

// call invokes a function with an event and reads its answer.
func call[E any](ctx context.Context, h lambda.Handler, event E) (answer E, err error) {
	raw, err := json.Marshal(event)
	if err != nil {
		return answer, err
	}
	if raw, err = h.Invoke(ctx, raw); err != nil {
		return answer, err
	}
	err = json.Unmarshal(raw, &answer)
	return answer, err
}
