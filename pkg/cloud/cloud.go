// Package cloud holds the AWS adapters behind a function's needs, each by itself: a function's main names those that it needs, and the linker
// leaves the others' SDKs out of its binary.
package cloud

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/caarlos0/env/v11"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Settings is what a function reads from its environment; a function that does not need a setting does not have it.
type Settings struct {
	DatabaseURL       string        `env:"DATABASE_URL"`                      // of the application role
	DatabaseReaderURL string        `env:"DATABASE_READER_URL"`               // of the compliance reader
	DatabaseLedgerURL string        `env:"DATABASE_LEDGER_URL"`               // of the ledger's one writer
	AppSyncURL        string        `env:"APPSYNC_URL"`                       // {appsync_url}, without /graphql
	FunctionPrefix    string        `env:"FUNCTION_PREFIX"`                   // put before a manifest name to give the Lambda function's
	OperatorEmails    string        `env:"SERVICE_PLATFORM_OPERATOR_EMAILS"`  // comma-separated
	PageTokenKey      string        `env:"PAGE_TOKEN_KEY,unset"`              // at least 32 characters, the same in all functions
	BedrockEndpoint   string        `env:"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"`  // empty: the region's own
	Region            string        `env:"AWS_REGION" envDefault:"us-east-1"` // set by Lambda
	DatabaseConns     int           `env:"DATABASE_MAX_CONNS" envDefault:"1"` // an instance answers one request at a time
	ModelConns        int           `env:"MODEL_MAX_CONNS" envDefault:"4"`    // idle connections to the model service
	ModelAttempts     int           `env:"MODEL_MAX_ATTEMPTS" envDefault:"5"` // of one model call, the first included
	DefaultModel      string        `env:"DEFAULT_MODEL_ID"`                  // of a new tenant's template
	UserPoolID        string        `env:"USER_POOL_ID"`
	APISecret         string        `env:"API_AUTH_SECRET,unset"`    // at least 32 characters
	EmissionKey       string        `env:"AUDIT_EMISSION_KEY,unset"` // at least 32 characters; the database must not hold it
	SigningKeyID      string        `env:"ANCHOR_SIGNING_KEY_ID"`    // KMS, ECC_NIST_P256
	AnchorBucket      string        `env:"ANCHOR_BUCKET"`            // write-once
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

// Ports are the adapters' and everything that is a setting only.
func Ports(ctx context.Context, adapters ...Adapter) (*handler.Ports, error) {
	a := &Account{ctx: ctx, aws: sync.OnceValue(func() aws.Config { return must(config.LoadDefaultConfig(ctx)) })}
	if err := env.Parse(&a.Settings); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	p := &handler.Ports{
		Operators:    func() tenant.Operators { return tenant.ParseOperators(a.OperatorEmails) },
		PageKey:      func() page.Key { return page.Key(secret("PAGE_TOKEN_KEY", a.PageTokenKey)) },
		EmissionKey:  func() []byte { return []byte(secret("AUDIT_EMISSION_KEY", a.EmissionKey)) },
		APISecret:    func() string { return secret("API_AUTH_SECRET", a.APISecret) },
		DefaultModel: func() string { return required("DEFAULT_MODEL_ID", a.DefaultModel) },
		Anchoring: func() handler.Anchoring {
			return handler.Anchoring{Interval: a.AnchorInterval, Retention: a.AnchorRetention, Origin: required("ANCHOR_ORIGIN", a.AnchorOrigin),
				WitnessURL: a.WitnessURL, WitnessKey: a.WitnessKey}
		},
	}
	for _, adapt := range adapters {
		adapt(a, p)
	}
	return p, nil
}

// secret is a setting that must be hard to guess.
func secret(name, value string) string {
	if len(value) < 32 {
		panic(name + " must have at least 32 characters")
	}
	return value
}

func required(name, value string) string {
	if value == "" {
		panic(name + " is not set")
	}
	return value
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
