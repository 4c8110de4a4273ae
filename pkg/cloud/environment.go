package cloud

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/caarlos0/env/v11"
)

// environment is what the SDK reads from the environment, where Lambda puts the role's credentials for as long as the instance lives. Clients ask
// it for what only they know the name of, by the methods below.
// https://docs.aws.amazon.com/sdkref/latest/guide/environment-variables.html
type environment struct {
	AccessKey       string `env:"AWS_ACCESS_KEY_ID,required,notEmpty"`
	SecretKey       string `env:"AWS_SECRET_ACCESS_KEY,required,notEmpty"`
	SessionToken    string `env:"AWS_SESSION_TOKEN"`
	Region          string `env:"AWS_REGION" envDefault:"us-east-1"` // as in Settings
	Endpoint        string `env:"AWS_ENDPOINT_URL"`
	IgnoreEndpoints bool   `env:"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"`
	FIPS            bool   `env:"AWS_USE_FIPS_ENDPOINT"`
	DualStack       bool   `env:"AWS_USE_DUALSTACK_ENDPOINT"`
	Attempts        int    `env:"AWS_MAX_ATTEMPTS"`
	RetryMode       string `env:"AWS_RETRY_MODE"` // standard or adaptive
}

// Environment is the configuration of a function: config.LoadDefaultConfig without what a function never has, profiles in files and the services
// that give credentials for them. Those are a megabyte of every binary.
func Environment(context.Context) (aws.Config, error) {
	e, err := env.ParseAs[environment]()
	if err != nil {
		return aws.Config{}, fmt.Errorf("environment: %w", err)
	}
	c := aws.Config{
		Region:           e.Region,
		Credentials:      credentials.NewStaticCredentialsProvider(e.AccessKey, e.SecretKey, e.SessionToken),
		HTTPClient:       awshttp.NewBuildableClient(), // one for all clients
		RetryMaxAttempts: e.Attempts,
		ConfigSources:    []any{e},
	}
	if e.RetryMode != "" {
		if c.RetryMode, err = aws.ParseRetryMode(e.RetryMode); err != nil {
			return aws.Config{}, fmt.Errorf("AWS_RETRY_MODE: %w", err)
		}
	}
	if e.Endpoint != "" && !e.IgnoreEndpoints {
		c.BaseEndpoint = &e.Endpoint
	}
	return c, nil
}

// GetServiceBaseEndpoint is the endpoint of one service, for its client: of "Secrets Manager", AWS_ENDPOINT_URL_SECRETS_MANAGER.
func (environment) GetServiceBaseEndpoint(_ context.Context, service string) (url string, found bool, err error) {
	url = os.Getenv("AWS_ENDPOINT_URL_" + strings.ReplaceAll(strings.ToUpper(service), " ", "_"))
	return url, url != "", nil
}

// GetIgnoreConfiguredEndpoints says whether endpoints of one's own do not count.
func (e environment) GetIgnoreConfiguredEndpoints(context.Context) (ignore, found bool, err error) {
	return e.IgnoreEndpoints, e.IgnoreEndpoints, nil
}

// GetUseFIPSEndpoint says whether to ask the endpoints with validated cryptography.
func (e environment) GetUseFIPSEndpoint(context.Context) (aws.FIPSEndpointState, bool, error) {
	if e.FIPS {
		return aws.FIPSEndpointStateEnabled, true, nil
	}
	return aws.FIPSEndpointStateUnset, false, nil
}

// GetUseDualStackEndpoint says whether to ask the endpoints that speak IPv6 too.
func (e environment) GetUseDualStackEndpoint(context.Context) (aws.DualStackEndpointState, bool, error) {
	if e.DualStack {
		return aws.DualStackEndpointStateEnabled, true, nil
	}
	return aws.DualStackEndpointStateUnset, false, nil
}
