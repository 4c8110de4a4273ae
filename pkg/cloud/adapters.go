package cloud

import (
	"log/slog"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// DB is PostgreSQL as the application role, for the need db.
func DB(a *Account, p *handler.Ports) { p.DB = a.database("DATABASE_URL", a.DatabaseURL) }

// Reader is PostgreSQL as the compliance reader, for db:reader.
func Reader(a *Account, p *handler.Ports) {
	p.Reader = a.database("DATABASE_READER_URL", a.DatabaseReaderURL)
}

// Ledger is PostgreSQL as the ledger's one writer, for db:ledger.
func Ledger(a *Account, p *handler.Ports) {
	p.Ledger = a.database("DATABASE_LEDGER_URL", a.DatabaseLedgerURL)
}

func (a *Account) database(name, url string) func() *postgres.DB {
	return sync.OnceValue(func() *postgres.DB {
		return must(postgres.Open(a.ctx, postgres.Config{URL: required(name, url), MaxConns: a.DatabaseConns}))
	})
}

// Model is Amazon Bedrock, for model.
func Model(a *Account, p *handler.Ports) {
	p.Model = sync.OnceValue(func() model.Model {
		bedrock := must(model.NewBedrock(model.BedrockConfig{Region: a.Region, Endpoint: a.BedrockEndpoint, Credentials: a.aws().Credentials, Connections: a.ModelConns}))
		return model.NewRetry(bedrock, model.RetryConfig{Attempts: a.ModelAttempts, Log: slog.Default()})
	})
}

// Publish is AppSync, for publish.
func Publish(a *Account, p *handler.Ports) {
	p.Publish = sync.OnceValue(func() publish.Publisher {
		return must(publish.NewAppSync(publish.AppSyncConfig{URL: required("APPSYNC_URL", a.AppSyncURL), Region: a.Region, Credentials: a.aws().Credentials}))
	})
}

// Invoke is AWS Lambda, for invoke:<function>.
func Invoke(a *Account, p *handler.Ports) {
	p.Invoke = sync.OnceValue(func() invoke.Invoker {
		return invoke.Lambda{Client: lambda.NewFromConfig(a.aws()), Prefix: required("FUNCTION_PREFIX", a.FunctionPrefix)}
	})
}

// Sign is AWS KMS, for sign and sign:public.
func Sign(a *Account, p *handler.Ports) {
	p.Sign = sync.OnceValue(func() sign.Signer {
		return &sign.KMS{Client: kms.NewFromConfig(a.aws()), KeyID: required("ANCHOR_SIGNING_KEY_ID", a.SigningKeyID)}
	})
}

// Objects is Amazon S3, for object:….
func Objects(a *Account, p *handler.Ports) {
	store := sync.OnceValue(func() *object.Store { return object.New(object.Config{Region: a.Region}) })
	p.Audit = func() *object.Bucket { return store().In(required("ANCHOR_BUCKET", a.AnchorBucket)) }
	p.Exports = func() *object.Bucket { return store().In(required("EXPORTS_BUCKET", a.ExportsBucket)) }
}

// Identity is Amazon Cognito, for identity.
func Identity(a *Account, p *handler.Ports) {
	p.Identity = sync.OnceValue(func() identity.Directory {
		return identity.Cognito{Client: cognitoidentityprovider.NewFromConfig(a.aws()), PoolID: required("USER_POOL_ID", a.UserPoolID)}
	})
}
