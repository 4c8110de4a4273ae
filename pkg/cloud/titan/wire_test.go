package titan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is a hand-written Bedrock. It keeps what it was asked.
type wire struct {
	*Embedder
	mu    sync.Mutex
	calls []call
}

type call struct {
	method, path string
	header       http.Header
	body         string
	text         string
}

// texts are those that were asked about, in the order of arrival.
func (s *wire) texts() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		all = append(all, c.text)
	}
	return all
}

// whole gives the SDK's request a body of its own, as package bedrock's client does: the SDK closes its body under the transport.
type whole struct{ *http.Client }

func (h whole) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	own := r.WithContext(r.Context())
	own.Body = io.NopCloser(bytes.NewReader(body))
	return h.Client.Do(own)
}

// speak starts a server that answers every call with write, and the SDK's client for it.
func speak(t *testing.T, c Config, write func(w http.ResponseWriter, r *http.Request, asked request)) *wire {
	t.Helper()
	s := &wire{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var asked request
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.calls = append(s.calls, call{r.Method, r.URL.EscapedPath(), r.Header, string(body), asked.InputText})
		s.mu.Unlock()
		write(w, r, asked)
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	c.Client = bedrockruntime.New(bedrockruntime.Options{Region: "eu-central-1", BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("AKIAIOSFODNN7EXAMPLE", "secret", ""), HTTPClient: whole{client}})
	c.BaseDelay, c.MaxDelay = time.Nanosecond, time.Nanosecond
	e, err := New(c)
	require.NoError(t, err)
	s.Embedder = e
	return s
}

// axis is a vector that points along one of its numbers.
func axis(dimension, at int) []float64 {
	v := make([]float64, dimension)
	v[at] = 1
	return v
}

// answered writes an answer as the model does: the vector by itself, and once more by its type.
func answered(w http.ResponseWriter, vector []float64, tokens int) {
	numbers, _ := json.Marshal(vector)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Bedrock-Input-Token-Count", fmt.Sprint(tokens))
	_, _ = fmt.Fprintf(w, `{"embedding":%s,"embeddingsByType":{"float":%s},"inputTextTokenCount":%d}`, numbers, numbers, tokens)
}

// refused writes an error as Bedrock does.
func refused(w http.ResponseWriter, status int, code, message string) {
	if code != "" {
		w.Header().Set("X-Amzn-Errortype", code+":http://internal.amazon.com/coral/")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

func tokensOf(text string) int { return len(strings.Fields(text)) }

func failure(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Message)
	return e
}
