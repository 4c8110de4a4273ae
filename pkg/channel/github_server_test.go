package channel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v79/github"
	"github.com/stretchr/testify/require"
)

// githubServer answers as GitHub's API does: of the pull request octocat/Hello-World#7, to one token.
type githubServer struct {
	*httptest.Server
	t      testing.TB
	refuse func(w http.ResponseWriter) bool

	mu       sync.Mutex
	calls    []string
	comments map[string][]*github.IssueComment // by issues and pulls
}

const githubToken = "github_pat_1"

func newGitHub(t testing.TB) *githubServer {
	s := &githubServer{t: t, comments: map[string][]*github.IssueComment{}, refuse: func(http.ResponseWriter) bool { return false }}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *githubServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	require.Equal(s.t, []string{"application/vnd.github+json", "2022-11-28"}, []string{r.Header.Get("Accept"), r.Header.Get("X-GitHub-Api-Version")})
	require.NotEmpty(s.t, r.Header.Get("User-Agent"))
	switch {
	case s.refuse(w):
	case r.Header.Get("Authorization") != "Bearer "+githubToken:
		s.error(w, 401, "Bad credentials")
	case r.URL.Path == "/user":
		fmt.Fprint(w, `{"login":"acme-bot","id":1,"type":"User"}`)
	case r.Method == http.MethodPost && r.URL.Path == "/repos/octocat/Hello-World/issues/7/comments":
		s.add(w, r, "issues")
	case r.Method == http.MethodPost && r.URL.Path == "/repos/octocat/Hello-World/pulls/7/comments/42/replies":
		s.add(w, r, "pulls")
	case r.Method == http.MethodGet && r.URL.Path == "/repos/octocat/Hello-World/issues/7/comments":
		s.list(w, r, "issues")
	case r.Method == http.MethodGet && r.URL.Path == "/repos/octocat/Hello-World/pulls/7/comments":
		s.list(w, r, "pulls")
	default:
		s.error(w, 404, "Not Found")
	}
}

func (s *githubServer) error(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message, "documentation_url": "https://docs.github.com/rest"})
}

func (s *githubServer) add(w http.ResponseWriter, r *http.Request, of string) {
	raw, _ := readAll(r)
	var in github.IssueComment
	if json.Unmarshal(raw, &in) != nil || in.GetBody() == "" {
		s.error(w, 422, "Validation Failed")
		return
	}
	if utf8.RuneCountInString(in.GetBody()) > 65_536 {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write(fixture(s.t, "github/api.error.422-too-long.json"))
		return
	}
	n := len(s.comments[of])
	made := github.Timestamp{Time: time.Unix(1_700_000_000+int64(n), 0)}
	c := &github.IssueComment{ID: github.Ptr(int64(1000 + n)), Body: in.Body, User: &github.User{Login: github.Ptr("acme-bot")}, CreatedAt: &made, UpdatedAt: &made}
	s.comments[of] = append(s.comments[of], c)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(c)
}

func (s *githubServer) list(w http.ResponseWriter, r *http.Request, of string) {
	q := r.URL.Query()
	since, err := time.Parse(time.RFC3339, q.Get("since"))
	require.NoError(s.t, err)
	size, _ := strconv.Atoi(q.Get("per_page"))
	page, _ := strconv.Atoi(q.Get("page"))
	found := slices.DeleteFunc(slices.Clone(s.comments[of]), func(c *github.IssueComment) bool { return c.UpdatedAt.Before(since) })
	from := min((page-1)*min(size, 100), len(found))
	_ = json.NewEncoder(w).Encode(found[from:min(from+min(size, 100), len(found))])
}

// says has the server answer so, whatever it is asked.
func (s *githubServer) says(status int, body string, headers ...string) {
	s.refuse = func(w http.ResponseWriter) bool {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
}

// asked is how often something was called by a method.
func (s *githubServer) asked(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.calls), func(c string) bool { return !strings.HasPrefix(c, method+" ") }))
}
