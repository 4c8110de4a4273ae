package handler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/caarlos0/env/v11"

	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// settings is what a function reads from its environment; a function that does not need a setting does not have it.
type settings struct {
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

// CloudPorts are the AWS adapters, configured by the environment. Each is opened by the first function that needs it, and panics where its
// setting is missing: the function then does not start.
func CloudPorts(ctx context.Context) (*Ports, error) {
	var s settings
	if err := env.Parse(&s); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	aws, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	open := func(name, url string) func() *postgres.DB {
		return sync.OnceValue(func() *postgres.DB {
			return must(postgres.Open(ctx, postgres.Config{URL: required(name, url), MaxConns: s.DatabaseConns}))
		})
	}
	store := sync.OnceValue(func() *object.Store { return object.New(object.Config{Region: s.Region}) })
	return &Ports{
		DB:     open("DATABASE_URL", s.DatabaseURL),
		Reader: open("DATABASE_READER_URL", s.DatabaseReaderURL),
		Ledger: open("DATABASE_LEDGER_URL", s.DatabaseLedgerURL),
		Model: sync.OnceValue(func() model.Model {
			bedrock := must(model.NewBedrock(model.BedrockConfig{Region: s.Region, Endpoint: s.BedrockEndpoint, Credentials: aws.Credentials, Connections: s.ModelConns}))
			return model.NewRetry(bedrock, model.RetryConfig{Attempts: s.ModelAttempts, Log: slog.Default()})
		}),
		Publish: sync.OnceValue(func() publish.Publisher {
			return must(publish.NewAppSync(publish.AppSyncConfig{URL: required("APPSYNC_URL", s.AppSyncURL), Region: s.Region, Credentials: aws.Credentials}))
		}),
		Invoke: sync.OnceValue(func() invoke.Invoker {
			return invoke.Lambda{Client: lambda.NewFromConfig(aws), Prefix: required("FUNCTION_PREFIX", s.FunctionPrefix)}
		}),
		Operators:   func() tenant.Operators { return tenant.ParseOperators(s.OperatorEmails) },
		PageKey:     func() page.Key { return page.Key(secret("PAGE_TOKEN_KEY", s.PageTokenKey)) },
		EmissionKey: func() []byte { return []byte(secret("AUDIT_EMISSION_KEY", s.EmissionKey)) },
		APISecret:   func() string { return secret("API_AUTH_SECRET", s.APISecret) },
		Sign: sync.OnceValue(func() sign.Signer {
			return &sign.KMS{Client: kms.NewFromConfig(aws), KeyID: required("ANCHOR_SIGNING_KEY_ID", s.SigningKeyID)}
		}),
		Anchoring: func() Anchoring {
			return Anchoring{Interval: s.AnchorInterval, Retention: s.AnchorRetention, Origin: required("ANCHOR_ORIGIN", s.AnchorOrigin),
				WitnessURL: s.WitnessURL, WitnessKey: s.WitnessKey}
		},
		Audit:   func() *object.Bucket { return store().In(required("ANCHOR_BUCKET", s.AnchorBucket)) },
		Exports: func() *object.Bucket { return store().In(required("EXPORTS_BUCKET", s.ExportsBucket)) },
		Identity: sync.OnceValue(func() identity.Directory {
			return identity.Cognito{Client: cognitoidentityprovider.NewFromConfig(aws), PoolID: required("USER_POOL_ID", s.UserPoolID)}
		}),
		DefaultModel: func() string { return required("DEFAULT_MODEL_ID", s.DefaultModel) },
	}, nil
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
