package standin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/stretchr/testify/require"
)

func start(t *testing.T) *AWS {
	t.Helper()
	a, err := Start(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"answered": true}`)) }))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Stop()) })
	return a
}

// call sends a signed call, of JSON or a form, and gives status and body.
func call(t *testing.T, a *AWS, service, method, path, target, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, a.URL+path, strings.NewReader(body))
	r.RequestURI = ""
	r.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "Action=") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	}
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=none/20260101/eu-central-1/"+service+"/aws4_request, SignedHeaders=host, Signature=none")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func TestWhatIsMadeCanBeReadChangedAndDeleted(t *testing.T) {
	a := start(t)

	// AppSync: moto's API under an id without hyphens, with all it was told, and a resolver.
	status, text := call(t, a, "appsync", "POST", "/v1/apis", "", `{"name": "x", "authenticationType": "AWS_IAM", "queryDepthLimit": 10}`)
	require.Equal(t, 200, status, text)
	_, id, _ := strings.Cut(text, `"apiId":"`)
	id, _, _ = strings.Cut(id, `"`)
	require.Regexp(t, `^[0-9a-f]{32}$`, id)
	_, text = call(t, a, "appsync", "GET", "/v1/apis/"+id, "", "")
	require.Contains(t, text, `"queryDepthLimit":10`)
	require.Contains(t, text, `https://`+id+`.appsync-api.eu-central-1.amazonaws.com/graphql`)
	at := "/v1/apis/" + id + "/types/Query/resolvers"
	status, text = call(t, a, "appsync", "POST", at, "", `{"fieldName": "turn", "dataSourceName": "get_turn"}`)
	require.Equal(t, 200, status, text)
	_, text = call(t, a, "appsync", "POST", at+"/turn", "", `{"dataSourceName": "other"}`)
	require.Contains(t, text, `"dataSourceName":"other"`)
	_, text = call(t, a, "appsync", "GET", at+"/turn", "", "")
	require.Contains(t, text, `"fieldName":"turn"`)
	status, _ = call(t, a, "appsync", "DELETE", at+"/turn", "", "")
	require.Equal(t, 200, status)
	status, _ = call(t, a, "appsync", "GET", at+"/turn", "", "")
	require.Equal(t, 404, status)

	// SES: a set of rules with one, which goes, and then the set.
	for _, action := range []string{"CreateReceiptRuleSet&RuleSetName=mail", "CreateReceiptRule&RuleSetName=mail&Rule.Name=mail&Rule.Enabled=true", "SetActiveReceiptRuleSet&RuleSetName=mail",
		"DescribeReceiptRule&RuleSetName=mail&RuleName=mail", "DeleteReceiptRule&RuleSetName=mail&RuleName=mail", "SetActiveReceiptRuleSet", "DeleteReceiptRuleSet&RuleSetName=mail"} {
		status, text = call(t, a, "ses", "POST", "/", "", "Action="+action)
		require.Equal(t, 200, status, "%s: %s", action, text)
	}

	_, text = call(t, a, "lambda", "POST", "/2015-03-31/functions/f/invocations", "", `{}`)
	require.JSONEq(t, `{"answered": true}`, text)
	require.Empty(t, a.Unanswered())
}

// A stack's secrets are in Secrets Manager, with values as long as asked for, and go with it.
func TestStacks(t *testing.T) {
	a := start(t)
	status, text := call(t, a, "cloudformation", "POST", "/", "", "Action=CreateStack&StackName=s&Parameters.member.1.ParameterKey=Prefix&Parameters.member.1.ParameterValue=p&TemplateBody="+
		"Parameters:%20{Prefix:%20{Type:%20String}}%0AResources:%0A%20%20One:%0A%20%20%20%20Type:%20AWS::SecretsManager::Secret%0A%20%20%20%20Properties:%0A%20%20%20%20%20%20Name:%20!Sub%20%22${Prefix}/one%22%0A"+
		"%20%20%20%20%20%20GenerateSecretString:%20{PasswordLength:%2048}%0AOutputs:%0A%20%20Arn:%20{Value:%20!Ref%20One}%0A")
	require.Equal(t, 200, status, text)
	_, text = call(t, a, "cloudformation", "POST", "/", "", "Action=DescribeStacks&StackName=s")
	require.Contains(t, text, "<OutputKey>Arn</OutputKey><OutputValue>arn:aws:secretsmanager:eu-central-1:"+Account+":secret:p/one-")
	secrets := secretsmanager.New(secretsmanager.Options{Region: "eu-central-1", BaseEndpoint: aws.String(a.URL), Credentials: credentials.NewStaticCredentialsProvider("none", "none", "")})
	value, err := secrets.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("p/one")})
	require.NoError(t, err)
	require.Len(t, aws.ToString(value.SecretString), 48)
	status, _ = call(t, a, "cloudformation", "POST", "/", "", "Action=DeleteStack&StackName=s")
	require.Equal(t, 200, status)
	_, err = secrets.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("p/one")})
	require.ErrorContains(t, err, "ResourceNotFoundException")

	for template, said := range map[string]string{
		`{"Resources":{"X":{"Type":"AWS::Nothing::Known"}}}`:     "the stand-in makes no AWS::Nothing::Known",
		`{"Resources":{},"Outputs":{"O":{"Value":{"Ref":"X"}}}}`: "unresolved: X",
	} {
		status, text = call(t, a, "cloudformation", "POST", "/", "", "Action=CreateStack&StackName=t&TemplateBody="+template)
		require.Equal(t, 400, status)
		require.Contains(t, text, said)
	}
}

// What nobody knows is refused as the caller's mistake, which nobody repeats, and remembered by its name.
func TestWhatNobodyKnowsIsNamed(t *testing.T) {
	a := start(t)
	for _, c := range []struct{ service, method, path, target, body, form string }{
		{"states", "POST", "/", "AWSStepFunctions.TellFortunes", `{}`, `{"__type": "NotPlayed", "message": "the stand-in for AWS does not know: states TellFortunes"}`},
		{"lambda", "GET", "/2040-01-01/fortunes", "", "", `{"__type": "NotPlayed", "message": "the stand-in for AWS does not know: lambda GET /2040-01-01/fortunes"}`},
		{"rds", "POST", "/", "", "Action=TellFortunes", "<Code>NotPlayed</Code><Message>the stand-in for AWS does not know: rds TellFortunes</Message>"},
	} {
		status, text := call(t, a, c.service, c.method, c.path, c.target, c.body)
		require.Equal(t, 400, status, text)
		require.Contains(t, text, c.form)
	}
	require.Equal(t, []string{"states TellFortunes", "lambda GET /2040-01-01/fortunes", "rds TellFortunes"}, a.Unanswered())
}

// The list of what is answered here is the list of what is answered here.
func TestOperationsAreNamed(t *testing.T) {
	for _, service := range Services {
		require.NotEmpty(t, service.Why, service.Name)
		require.NotEmpty(t, service.Operations, service.Name)
		named := strings.Split(service.Operations, ", ")
		for call := range service.answers {
			if _, operation, _ := strings.Cut(call, " "); !strings.HasPrefix(operation, "/") {
				require.Contains(t, named, operation, service.Name)
			}
		}
	}
}
