// Package cloud puts AWS behind a function's needs: its settings, its account and its databases. Each service with an SDK of its own is a package
// below. A function's main names the adapters of its needs, so that its binary holds the SDKs of those and of no others: even an SDK whose client
// nobody makes has the schemas of all its operations built at each start.
package cloud

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/caarlos0/env/v11"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Settings is what a function reads from its environment; a function that does not need a setting does not have it.
type Settings struct {
	DatabaseURL       string        `env:"DATABASE_URL"`                        // of the application role
	DatabaseReaderURL string        `env:"DATABASE_READER_URL"`                 // of the compliance reader
	DatabaseLedgerURL string        `env:"DATABASE_LEDGER_URL"`                 // of the ledger's one writer
	DatabaseOwnerURL  string        `env:"DATABASE_OWNER_URL,unset"`            // of the database's owner
	DatabaseOwnerID   string        `env:"DATABASE_OWNER_SECRET_ID"`            // instead: the secret that holds it, as JSON
	KnowledgeSecretID string        `env:"DATABASE_KNOWLEDGE_SECRET_ID"`        // the secret of the managed knowledge base's role, as JSON; empty: there is none
	DatabaseAuth      string        `env:"DATABASE_AUTH" envDefault:"password"` // of all but the owner: iam = a token of IAM for each connection
	AppSyncURL        string        `env:"APPSYNC_URL"`                         // {appsync_url}, without /graphql
	FunctionPrefix    string        `env:"FUNCTION_PREFIX"`                     // put before a manifest name to give the Lambda function's, and before a machine's to give the state machine's
	OperatorEmails    string        `env:"SERVICE_PLATFORM_OPERATOR_EMAILS"`    // comma-separated
	PageTokenKey      string        `env:"PAGE_TOKEN_KEY,unset"`                // at least 32 characters, the same in all functions
	PageTokenKeyID    string        `env:"PAGE_TOKEN_KEY_SECRET_ID"`            // instead: the secret of AWS Secrets Manager that is the key
	BedrockEndpoint   string        `env:"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"`    // empty: the region's own
	S3Endpoint        string        `env:"AWS_ENDPOINT_URL_S3"`                 // empty: AWS_ENDPOINT_URL, or the region's own
	Endpoint          string        `env:"AWS_ENDPOINT_URL"`                    // of all services that have none of their own; empty: the region's
	Region            string        `env:"AWS_REGION" envDefault:"us-east-1"`   // set by Lambda
	DatabaseConns     int           `env:"DATABASE_MAX_CONNS" envDefault:"1"`   // an instance answers one request at a time
	ModelConns        int           `env:"MODEL_MAX_CONNS" envDefault:"4"`      // idle connections to the model service
	ModelAttempts     int           `env:"MODEL_MAX_ATTEMPTS" envDefault:"5"`   // of one model call, the first included
	DefaultModel      string        `env:"DEFAULT_MODEL_ID"`                    // of a new tenant's template
	UserPoolID        string        `env:"USER_POOL_ID"`
	AgentRuntimes     string        `env:"AGENT_RUNTIMES"`               // selector=ARN or URL, comma-separated; empty: turns run in dispatch-turn
	CodeInterpreterID string        `env:"CODE_INTERPRETER_ID"`          // AgentCore; empty: no code runs
	ToolSecretsPrefix string        `env:"TOOL_SECRETS_PREFIX"`          // of the parameters that hold tenants' secrets of tool servers: /agentplatform-prod/tools
	ToolSecretsKeyID  string        `env:"TOOL_SECRETS_KEY_ID"`          // KMS, of that category
	IntegrationPrefix string        `env:"INTEGRATION_SECRETS_PREFIX"`   // likewise, of integrations and task webhooks
	IntegrationKeyID  string        `env:"INTEGRATION_SECRETS_KEY_ID"`   // likewise
	ConnectionPrefix  string        `env:"CONNECTION_SECRETS_PREFIX"`    // likewise, of users' connections to providers
	ConnectionKeyID   string        `env:"CONNECTION_SECRETS_KEY_ID"`    // likewise
	PushApplications  string        `env:"PUSH_APPLICATIONS"`            // platform=ARN of an SNS platform application, comma-separated; empty: no device is told anything
	EgressLoopback    bool          `env:"EGRESS_LOOPBACK"`              // tenants may name addresses of this machine: on one machine only
	ScheduleGroup     string        `env:"SCHEDULE_GROUP"`               // of tenants' schedules, in EventBridge Scheduler
	ScheduleTarget    string        `env:"SCHEDULE_TARGET_ARN"`          // the state machine that they start
	ScheduleRole      string        `env:"SCHEDULE_ROLE_ARN"`            // what the scheduler takes to start it
	ScheduleLetters   string        `env:"SCHEDULE_DEAD_LETTERS_ARN"`    // where an occurrence goes that cannot be delivered
	WorkflowRole      string        `env:"WORKFLOW_ROLE_ARN"`            // what tenants' state machines run as
	WorkflowLogGroup  string        `env:"WORKFLOW_LOG_GROUP_ARN"`       // where Step Functions reports what fails in them; empty: nowhere
	MailFrom          string        `env:"MAIL_FROM"`                    // the address that e-mails come from; empty: none are sent
	MailDomain        string        `env:"MAIL_DOMAIN"`                  // whose mail is received; empty: none is
	MailBucket        string        `env:"MAIL_BUCKET"`                  // where it is
	APISecret         string        `env:"API_AUTH_SECRET,unset"`        // at least 32 characters
	APISecretID       string        `env:"API_AUTH_SECRET_SECRET_ID"`    // instead: the secret
	EmissionKey       string        `env:"AUDIT_EMISSION_KEY,unset"`     // at least 32 characters; the database must not hold it
	EmissionKeyID     string        `env:"AUDIT_EMISSION_KEY_SECRET_ID"` // instead: the secret
	SigningKeyID      string        `env:"ANCHOR_SIGNING_KEY_ID"`        // KMS, ECC_NIST_P256
	AnchorBucket      string        `env:"ANCHOR_BUCKET"`                // write-once
	ExportsBucket     string        `env:"EXPORTS_BUCKET"`
	AnchorOrigin      string        `env:"ANCHOR_ORIGIN"`                       // names the anchor log
	AnchorInterval    time.Duration `env:"ANCHOR_INTERVAL" envDefault:"15m"`    // of cadences
	AnchorRetention   time.Duration `env:"ANCHOR_RETENTION" envDefault:"9600h"` // 400 days
	WitnessURL        string        `env:"ANCHOR_WITNESS_URL"`                  // C2SP tlog-witness; empty: none
	WitnessKey        string        `env:"ANCHOR_WITNESS_KEY"`                  // its verifier key
}

// Adapter puts one technology behind a function's ports. What it opens, it opens when the function asks, and panics where a setting is
// missing: the function then does not start.
type Adapter func(a *Account, p *handler.Ports)

// Account is what adapters stand on: the environment's settings and credentials.
type Account struct {
	Settings
	ctx context.Context // of the process
	aws func() aws.Config
}

// Context is the process's.
func (a *Account) Context() context.Context { return a.ctx }

// AWS is what clients are made from.
func (a *Account) AWS() aws.Config { return a.aws() }

// Ports are the adapters' and everything that is a setting only. load is asked once, when the first client is made: Environment in a function.
func Ports(ctx context.Context, load func(context.Context) (aws.Config, error), adapters ...Adapter) (*handler.Ports, error) {
	a := &Account{ctx: ctx, aws: sync.OnceValue(func() aws.Config { return Must(load(ctx)) })}
	if err := env.Parse(&a.Settings); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	p := &handler.Ports{
		Operators:    func() tenant.Operators { return tenant.ParseOperators(a.OperatorEmails) },
		DefaultModel: func() string { return Required("DEFAULT_MODEL_ID", a.DefaultModel) },
		MailFrom:     func() string { return a.MailFrom },
		MailDomain:   func() string { return a.MailDomain },
		FunctionName: func(name string) string { return Required("FUNCTION_PREFIX", a.FunctionPrefix) + name },
		Egress:       func() egress.Config { return egress.Config{Loopback: a.EgressLoopback} },
		Anchoring: func() handler.Anchoring {
			return handler.Anchoring{Interval: a.AnchorInterval, Retention: a.AnchorRetention, Origin: Required("ANCHOR_ORIGIN", a.AnchorOrigin),
				WitnessURL: a.WitnessURL, WitnessKey: a.WitnessKey}
		},
	}
	for _, adapt := range adapters {
		adapt(a, p)
	}
	return p, nil
}

// Required is the value of a setting that a function cannot start without.
func Required(name, value string) string {
	if value == "" {
		panic(name + " is not set")
	}
	return value
}

// Must is v; an error ends the start.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
