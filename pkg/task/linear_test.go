package task_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/oauth/oauthtest"
)

// linear is Linear.
type linear struct {
	*httptest.Server
	t         testing.TB
	authority *oauthtest.Server
	mu        sync.Mutex
	issue     fields           // as it is now
	other     http.HandlerFunc // that answers instead; nil: none does
	asked     []string         // whose token each question came with
}

func newLinear(t testing.TB) *linear {
	l := &linear{t: t, authority: oauthtest.New(t)}
	l.authority.ClientSecret, l.authority.RedirectURIs = "the client's s3cret", []string{back}
	raw, err := os.ReadFile("../tracker/testdata/linear/live/issue.json")
	require.NoError(t, err)
	var said struct{ Data struct{ Issue fields } }
	require.NoError(t, json.Unmarshal(raw, &said))
	l.issue = said.Data.Issue
	mux := http.NewServeMux()
	mux.Handle("/oauth/", l.authority.At("/oauth"))
	mux.HandleFunc("POST /graphql", l.graphql)
	l.Server = httptest.NewServer(mux)
	t.Cleanup(l.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return l
}

func (l *linear) graphql(rw http.ResponseWriter, r *http.Request) {
	var asked struct{ Query string }
	_ = json.NewDecoder(r.Body).Decode(&asked)
	person, ok := l.authority.Whose(r)
	l.mu.Lock()
	l.asked = append(l.asked, person)
	other, answer := l.other, encode(l.t, fields{"data": fields{"issue": l.issue}})
	l.mu.Unlock()
	switch {
	case strings.Contains(asked.Query, "viewer"):
		answer = encode(l.t, fields{"data": fields{"viewer": fields{"id": person, "name": "Somebody", "organization": fields{"id": acmeID, "name": "Acme"}}}})
	case other != nil:
		other(rw, r)
		return
	case !ok:
		rw.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = rw.Write(answer)
}

// now is the issue as it has become.
func (l *linear) now(changes fields) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.issue, changes)
}

// answers has all questions for issues answered so.
func (l *linear) answers(by http.HandlerFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.other = by
}

// questions are whose tokens issues were asked for with.
func (l *linear) questions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}
