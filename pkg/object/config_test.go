package object_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"
)

// TestCredentials: without an access key each request is signed as whom the credentials say then.
func TestCredentials(t *testing.T) {
	var signed string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		signed = r.Header.Get("Authorization")
	}))
	defer srv.Close()
	role := credentials.NewStaticCredentialsProvider("OFTHEROLE", "secret", "session")
	store := object.New(object.Config{Region: "eu-west-1", Endpoint: srv.URL, PathStyle: true, Credentials: role})
	_, err := store.In("b").Put(t.Context(), "k", strings.NewReader("x"), object.PutOptions{})
	require.NoError(t, err)
	require.Contains(t, signed, "Credential=OFTHEROLE/")
	require.Contains(t, signed, "/eu-west-1/s3/aws4_request")

	signed = ""
	store = object.New(object.Config{Region: "eu-west-1", Endpoint: srv.URL, PathStyle: true})
	_, err = store.In("b").Put(t.Context(), "k", strings.NewReader("x"), object.PutOptions{})
	require.ErrorContains(t, err, "no credentials")
	require.Empty(t, signed, "nothing is asked anonymously")
}

// TestConflictIsRepeated: AWS answers 409 while another conditional write of the same key is at work.
func TestConflictIsRepeated(t *testing.T) {
	answers := []struct {
		status int
		code   string
	}{{http.StatusConflict, "ConditionalRequestConflict"}, {http.StatusPreconditionFailed, "PreconditionFailed"}}
	var bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		a := answers[min(len(bodies), len(answers))-1]
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, "<Error><Code>"+a.code+"</Code><Message>m</Message></Error>")
	}))
	defer srv.Close()
	store := object.New(object.Config{Region: "us-east-1", Endpoint: srv.URL, AccessKey: "k", Secret: "s", PathStyle: true})
	_, err := store.In("b").Put(context.Background(), "k", strings.NewReader("the body"), object.PutOptions{IfNoneMatch: true})
	require.ErrorIs(t, err, object.ErrExists)
	require.Equal(t, []string{"the body", "the body"}, bodies)
}
