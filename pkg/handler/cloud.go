package handler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/caarlos0/env/v11"

	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// settings is what a function reads from its environment; a function that does not need a setting does not have it.
type settings struct {
	DatabaseURL       string `env:"DATABASE_URL"`                      // of the application role
	DatabaseReaderURL string `env:"DATABASE_READER_URL"`               // of the compliance reader
	AppSyncURL        string `env:"APPSYNC_URL"`                       // {appsync_url}, without /graphql
	FunctionPrefix    string `env:"FUNCTION_PREFIX"`                   // put before a manifest name to give the Lambda function's
	OperatorEmails    string `env:"SERVICE_PLATFORM_OPERATOR_EMAILS"`  // comma-separated
	PageTokenKey      string `env:"PAGE_TOKEN_KEY,unset"`              // at least 32 characters, the same in all functions
	BedrockEndpoint   string `env:"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"`  // empty: the region's own
	Region            string `env:"AWS_REGION" envDefault:"us-east-1"` // set by Lambda
	DatabaseConns     int    `env:"DATABASE_MAX_CONNS" envDefault:"1"` // an instance answers one request at a time
	ModelConns        int    `env:"MODEL_MAX_CONNS" envDefault:"4"`    // idle connections to the model service
	ModelAttempts     int    `env:"MODEL_MAX_ATTEMPTS" envDefault:"5"` // of one model call, the first included
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
	return &Ports{
		DB:     open("DATABASE_URL", s.DatabaseURL),
		Reader: open("DATABASE_READER_URL", s.DatabaseReaderURL),
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
		Operators: func() tenant.Operators { return tenant.ParseOperators(s.OperatorEmails) },
		PageKey: func() page.Key {
			if len(s.PageTokenKey) < 32 {
				panic("PAGE_TOKEN_KEY must have at least 32 characters")
			}
			return page.Key(s.PageTokenKey)
		},
	}, nil
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
