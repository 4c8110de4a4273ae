package cloud

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/require"
)

// TestEnvironmentIsWhatTheSDKReads holds clients made from Environment against those that the SDK's own way to a configuration makes.
func TestEnvironmentIsWhatTheSDKReads(t *testing.T) {
	role := map[string]string{"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "any", "AWS_SESSION_TOKEN": "of the role", "AWS_REGION": "eu-central-1",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
	for name, more := range map[string]map[string]string{
		"as in Lambda":                  nil,
		"an endpoint for all":           {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"},
		"an endpoint of one":            {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_ENDPOINT_URL_LAMBDA": "http://127.0.0.1:9001"},
		"endpoints that do not count":   {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_ENDPOINT_URL_LAMBDA": "http://127.0.0.1:9001", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
		"endpoints of FIPS, dual stack": {"AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"},
		"patience":                      {"AWS_RETRY_MODE": "adaptive", "AWS_MAX_ATTEMPTS": "7"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, set := range []map[string]string{role, more} {
				for name, value := range set {
					t.Setenv(name, value)
				}
			}
			ours, err := Environment(t.Context())
			require.NoError(t, err)
			theirs, err := config.LoadDefaultConfig(t.Context())
			require.NoError(t, err)

			require.Equal(t, theirs.Region, ours.Region)
			got, want := lambda.NewFromConfig(ours).Options(), lambda.NewFromConfig(theirs).Options()
			require.Equal(t, want.Region, got.Region)
			require.Equal(t, aws.ToString(want.BaseEndpoint), aws.ToString(got.BaseEndpoint))
			require.Equal(t, want.EndpointOptions, got.EndpointOptions)
			require.Equal(t, want.RetryMode, got.RetryMode)
			require.Equal(t, want.RetryMaxAttempts, got.RetryMaxAttempts)
			require.Equal(t, want.Retryer.MaxAttempts(), got.Retryer.MaxAttempts())
			require.Equal(t, aws.ToString(kms.NewFromConfig(theirs).Options().BaseEndpoint), aws.ToString(kms.NewFromConfig(ours).Options().BaseEndpoint))

			who, err := got.Credentials.Retrieve(t.Context())
			require.NoError(t, err)
			as, err := want.Credentials.Retrieve(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{as.AccessKeyID, as.SecretAccessKey, as.SessionToken}, []string{who.AccessKeyID, who.SecretAccessKey, who.SessionToken})
		})
	}
}

func TestAFunctionWithoutCredentialsDoesNotStart(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := Environment(t.Context())
	require.ErrorContains(t, err, `"AWS_SECRET_ACCESS_KEY"`)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "any")
	t.Setenv("AWS_RETRY_MODE", "never")
	_, err = Environment(t.Context())
	require.ErrorContains(t, err, "AWS_RETRY_MODE: ")
}
