package secretsmanager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	awssecrets "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/test/moto"
)

// account has the SDK's own settings lead to moto; its secrets are made with the client.
func account(t *testing.T) *awssecrets.Client {
	t.Helper()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": moto.Start(t), "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "any",
		"AWS_SECRET_ACCESS_KEY": "any", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	c, err := config.LoadDefaultConfig(t.Context())
	require.NoError(t, err)
	return awssecrets.NewFromConfig(c)
}

// ports are those of a function with this environment.
func ports(t *testing.T, environment map[string]string, adapters ...cloud.Adapter) *handler.Ports {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	p, err := cloud.Ports(context.Background(), cloud.Environment, adapters...)
	require.NoError(t, err)
	return p
}

// refusal is what a start that fails says.
func refusal(t *testing.T, start func()) (message string) {
	t.Helper()
	defer func() {
		r := recover()
		require.NotNil(t, r, "it started")
		message = fmt.Sprint(r)
	}()
	start()
	return ""
}

var long = strings.Repeat("0123456789abcdef", 2)

func TestSecretsAreReadFromTheEnvironmentOrFromSecretsManager(t *testing.T) {
	c := account(t)
	arn := create(t, c, "stage/platform/PAGE_TOKEN_KEY", long+"page")
	create(t, c, "stage/emission/AUDIT_EMISSION_KEY", long+"emission")
	p := ports(t, map[string]string{"PAGE_TOKEN_KEY_SECRET_ID": arn, "AUDIT_EMISSION_KEY_SECRET_ID": "stage/emission/AUDIT_EMISSION_KEY", "API_AUTH_SECRET": long},
		secretsmanager.Secrets)
	require.Equal(t, long+"page", string(p.PageKey()))
	require.Equal(t, long+"emission", string(p.EmissionKey()))
	require.Equal(t, long, p.APISecret())

	next := long + "another"
	_, err := c.PutSecretValue(t.Context(), &awssecrets.PutSecretValueInput{SecretId: &arn, SecretString: &next})
	require.NoError(t, err)
	require.Equal(t, long+"page", string(p.PageKey()), "a process reads a secret once")
	p = ports(t, map[string]string{}, secretsmanager.Secrets)
	require.Equal(t, next, string(p.PageKey()), "and the next process the value of then")
}

func TestASecretThatCannotBeUsedIsNamed(t *testing.T) {
	const short = "too short to be one"
	create(t, account(t), "stage/short", short)
	for _, c := range []struct {
		environment map[string]string
		want        string
	}{
		{nil, "neither API_AUTH_SECRET nor API_AUTH_SECRET_SECRET_ID is set"},
		{map[string]string{"API_AUTH_SECRET": long, "API_AUTH_SECRET_SECRET_ID": "stage/short"}, "API_AUTH_SECRET and API_AUTH_SECRET_SECRET_ID are both set: take one of them out"},
		{map[string]string{"API_AUTH_SECRET": short}, "API_AUTH_SECRET must have at least 32 characters"},
		{map[string]string{"API_AUTH_SECRET_SECRET_ID": "stage/short"}, "API_AUTH_SECRET_SECRET_ID: secret stage/short must have at least 32 characters"},
		{map[string]string{"API_AUTH_SECRET_SECRET_ID": "stage/none"}, "API_AUTH_SECRET_SECRET_ID: secret stage/none: there is no such secret in this account and region: "},
	} {
		t.Run(c.want, func(t *testing.T) {
			p := ports(t, c.environment, secretsmanager.Secrets) // a function that does not ask starts
			message := refusal(t, func() { p.APISecret() })
			require.True(t, strings.HasPrefix(message, c.want), message)
			require.NotContains(t, message, short)
			require.NotContains(t, message, long)
		})
	}
}

func TestTheOwnerOfTheDatabase(t *testing.T) {
	c := account(t)
	create(t, c, "stage/database/owner", `{"engine": "postgres", "host": "db.example.com", "port": 6432, "dbname": "agent platform", "username": "owner", "password": "p/w:? @#"}`)
	p := ports(t, map[string]string{"DATABASE_OWNER_SECRET_ID": "stage/database/owner"}, secretsmanager.Owner)
	owner := p.Owner()
	token, err := owner.Password(t.Context(), "db.example.com:6432", "owner")
	require.NoError(t, err)
	require.Contains(t, token, "DBUser=owner", "for where the password is refused")
	owner.Password = nil
	connection, err := owner.Connection()
	require.NoError(t, err)
	require.Equal(t, []any{"db.example.com", uint16(6432), "agent platform", "owner", "p/w:? @#"},
		[]any{connection.Host, connection.Port, connection.Database, connection.User, connection.Password})
	require.Equal(t, "db.example.com", connection.TLSConfig.ServerName, "sslmode=verify-full")
	require.False(t, connection.TLSConfig.InsecureSkipVerify)
	require.NotNil(t, connection.TLSConfig.RootCAs)

	for name, text := range map[string]string{
		`is not the JSON object of a database: engine, host, port, dbname, username, password`: `"p-of-the-owner"`,
		`is not the JSON object of a database`:                                                 `p-of-the-owner`,
		`is of engine mysql, not of postgres`:                                                  `{"engine": "mysql", "host": "h", "dbname": "d", "username": "u", "password": "p-of-the-owner"}`,
		`has no host`:                                                                          `{"username": "u", "password": "p-of-the-owner"}`,
		`has no password`:                                                                      `{"engine": "aurora-postgresql", "host": "h", "port": "5432", "dbname": "d", "username": "u"}`,
	} {
		t.Run(name, func(t *testing.T) {
			arn := create(t, c, strings.NewReplacer(" ", "-", ":", "-", ",", "-").Replace(name), text)
			p := ports(t, map[string]string{"DATABASE_OWNER_SECRET_ID": arn}, secretsmanager.Owner)
			message := refusal(t, func() { p.Owner() })
			require.Contains(t, message, "DATABASE_OWNER_SECRET_ID: secret "+arn+" "+name)
			require.NotContains(t, message, "p-of-the-owner")
		})
	}

	p = ports(t, map[string]string{"DATABASE_OWNER_SECRET_ID": "", "DATABASE_OWNER_URL": "postgres://owner:p@127.0.0.1/app"}, secretsmanager.Owner)
	require.Equal(t, "postgres://owner:p@127.0.0.1/app", p.Owner().URL)
	p = ports(t, map[string]string{"DATABASE_OWNER_URL": "any", "DATABASE_OWNER_SECRET_ID": "any"}, secretsmanager.Owner)
	require.Equal(t, "DATABASE_OWNER_URL and DATABASE_OWNER_SECRET_ID are both set: take one of them out", refusal(t, func() { p.Owner() }))
	p = ports(t, map[string]string{"DATABASE_OWNER_URL": "", "DATABASE_OWNER_SECRET_ID": ""}, secretsmanager.Owner)
	require.Equal(t, "neither DATABASE_OWNER_URL nor DATABASE_OWNER_SECRET_ID is set", refusal(t, func() { p.Owner() }))
}
