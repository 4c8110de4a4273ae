package awsapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	cognito "github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/kms"
	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// said notes what reached those behind the API.
type said struct {
	mu     sync.Mutex
	events []publish.Event
	calls  []string
}

func (s *said) Publish(_ context.Context, events ...publish.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, events...)
	return nil
}

func (s *said) handler(answer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = append(s.calls, r.URL.Path+" "+r.Header.Get("X-Amz-Target")+" "+string(body))
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_, _ = io.WriteString(w, answer)
	})
}

type world struct {
	said
	url    string
	signer sign.Signer
	key    aws.CredentialsProvider
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{key: credentials.NewStaticCredentialsProvider("platform", "its secret", "")}
	var err error
	w.signer, err = sign.File(filepath.Join(t.TempDir(), "key.pem"))
	require.NoError(t, err)
	secrets, err := secret.Dir(t.TempDir(), strings.Repeat("k", 32))
	require.NoError(t, err)
	others, err := secret.Dir(t.TempDir(), strings.Repeat("k", 32))
	require.NoError(t, err)
	server := httptest.NewServer(awsapi.New(awsapi.Config{Secrets: []awsapi.Secrets{{Prefix: "/local/tools", KeyID: "tools-key", Store: secrets}, {Prefix: "/local/connections", KeyID: "connections-key", Store: others}},
		AccessKey: "platform", Secret: "its secret", KeyID: "local-key", Signer: w.signer, Publisher: &w.said,
		Lambda: w.handler(`"done"`), Cognito: w.handler(`{}`)}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) kms(key aws.CredentialsProvider) *awskms.Client {
	return awskms.New(awskms.Options{Region: "us-east-1", BaseEndpoint: &w.url, Credentials: key, RetryMaxAttempts: 1})
}

func TestKMS(t *testing.T) {
	w := start(t)
	signer := &kms.Signer{Client: w.kms(w.key), KeyID: "local-key"}
	public, err := signer.Public(t.Context())
	require.NoError(t, err)
	own, err := w.signer.Public(t.Context())
	require.NoError(t, err)
	require.True(t, own.Equal(public))
	digest := sha256.Sum256([]byte("text"))
	signature, err := signer.Sign(t.Context(), digest)
	require.NoError(t, err)
	require.True(t, ecdsa.VerifyASN1(own, digest[:], signature))

	var missing *types.NotFoundException
	_, err = (&kms.Signer{Client: w.kms(w.key), KeyID: "other"}).Public(t.Context())
	require.ErrorAs(t, err, &missing)
	_, err = w.kms(w.key).Sign(t.Context(), &awskms.SignInput{KeyId: aws.String("local-key"), Message: []byte("text"), SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256})
	require.ErrorContains(t, err, "ValidationException")
	_, err = w.kms(w.key).ListKeys(t.Context(), &awskms.ListKeysInput{})
	require.Error(t, err)
}

func TestAppSync(t *testing.T) {
	w := start(t)
	publisher, err := appsync.New(appsync.Config{URL: w.url, Region: "us-east-1", Credentials: w.key, Tries: 1})
	require.NoError(t, err)
	chunk := publish.StreamChunk{TenantID: "t", ThreadID: "CHAT-1", MessageID: "m", Chunk: "Hé \"you\"\n"}
	activity := publish.AgentActivity{TenantID: "t", AgentID: "a", ThreadID: "CHAT-1", Status: publish.Idle}
	require.NoError(t, publisher.Publish(t.Context(), chunk, activity))
	require.Equal(t, chunk, w.events[0])
	require.Len(t, w.events, 2)

	for _, body := range []string{``, `{}`, `{"query":"{ listThreads { nextToken } }","variables":{"event":"{\"__typename\":\"StreamChunkEvent\",\"tenantId\":\"t\",\"threadId\":\"c\"}"}}`,
		`{"query":"mutation { publishAgentActivity(event: \"\") { status } }","variables":{"event":"{\"__typename\":\"StreamChunkEvent\",\"tenantId\":\"t\",\"threadId\":\"c\"}"}}`} {
		status, answer := w.post(t, w.key, "/graphql", body, nil)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, answer, `"errors":[{`)
	}
	require.Len(t, w.events, 2)
}

func TestLambdaAndCognito(t *testing.T) {
	w := start(t)
	functions := lambda.New(lambda.Options{Region: "us-east-1", BaseEndpoint: &w.url, Credentials: w.key, RetryMaxAttempts: 1})
	out, err := functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("a-b"), Payload: []byte(`{"n":1}`)})
	require.NoError(t, err)
	require.Equal(t, `"done"`, string(out.Payload))
	pool := cognito.New(cognito.Options{Region: "us-east-1", BaseEndpoint: &w.url, Credentials: w.key, RetryMaxAttempts: 1})
	_, err = pool.AdminUserGlobalSignOut(t.Context(), &cognito.AdminUserGlobalSignOutInput{UserPoolId: aws.String("p"), Username: aws.String("u")})
	require.NoError(t, err)
	require.Len(t, w.calls, 2)
	require.Equal(t, `/2015-03-31/functions/a-b/invocations  {"n":1}`, w.calls[0])
	require.Contains(t, w.calls[1], `/ AWSCognitoIdentityProviderService.AdminUserGlobalSignOut {"`)
	status, _ := w.post(t, w.key, "/", `{}`, http.Header{"X-Amz-Target": {"Other.Thing"}})
	require.Equal(t, http.StatusBadRequest, status)
	status, _ = w.post(t, w.key, "/elsewhere", `{}`, nil)
	require.Equal(t, http.StatusNotFound, status)
}

// post sends a request as signed by a key; change then alters it.
func (w *world) post(t *testing.T, key aws.CredentialsProvider, path, body string, header http.Header, change ...func(r *http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	require.NoError(t, err)
	for name, values := range header {
		r.Header[name] = values
	}
	keys, err := key.Retrieve(t.Context())
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(body))
	require.NoError(t, v4.NewSigner().SignHTTP(t.Context(), keys, r, hex.EncodeToString(sum[:]), "appsync", "us-east-1", time.Now()))
	for _, c := range change {
		c(r)
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(answer)
}

// Nothing passes that is not signed, as it is, with the platform's key, just now.
func TestWhatIsNotSignedIsRefused(t *testing.T) {
	w := start(t)
	status, _ := w.post(t, w.key, "/2015-03-31/functions/f/invocations", `{}`, nil)
	require.Equal(t, http.StatusOK, status)
	other := func(id, secret string) aws.CredentialsProvider {
		return credentials.NewStaticCredentialsProvider(id, secret, "")
	}
	for name, c := range map[string]struct {
		key    aws.CredentialsProvider
		change func(r *http.Request)
	}{
		"no signature":   {w.key, func(r *http.Request) { r.Header.Del("Authorization") }},
		"another key":    {other("reader", "its secret"), func(*http.Request) {}},
		"another secret": {other("platform", "guessed"), func(*http.Request) {}},
		"another path":   {w.key, func(r *http.Request) { r.URL.Path = "/2015-03-31/functions/g/invocations" }},
		"another body":   {w.key, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`[]`)) }},
		"another query":  {w.key, func(r *http.Request) { r.URL.RawQuery = "Qualifier=1" }},
		"another time": {w.key, func(r *http.Request) {
			r.Header.Set("X-Amz-Date", time.Now().Add(time.Minute).UTC().Format("20060102T150405Z"))
		}},
		"no time": {w.key, func(r *http.Request) { r.Header.Del("X-Amz-Date") }},
		"nothing is signed": {w.key, func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "SignedHeaders=", "SignedHeaders=x-", 1))
		}},
	} {
		status, answer := w.post(t, c.key, "/2015-03-31/functions/f/invocations", `{}`, nil, c.change)
		require.Equal(t, http.StatusForbidden, status, name)
		require.Contains(t, answer, "InvalidSignatureException")
	}
	require.Len(t, w.calls, 1)
}
