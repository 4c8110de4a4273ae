// Package standin plays AWS on this machine, well enough for Terraform to deploy all of infra/: moto's server, and in front of it a proxy that answers
// what moto does not know.
//
// Invariants:
//   - What is answered or amended here is in Services, each with the reason, and everything else is moto's answer, unchanged.
//   - What is made can be read again, changed and deleted, as made: it is kept in memory.
//   - A call that nobody knows is refused at once, by its name, and Unanswered has it: nothing is skipped in silence.
//   - Nothing here checks what AWS would check. A deployment to it shows that what infra/ says fits together, and that the provider can say it; not that
//     AWS takes it.
package standin

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agentplatform/agentplatform/test/moto"
)

// Account is moto's one account.
const Account = "123456789012"

// AWS is a running stand-in.
type AWS struct {
	URL string // what AWS_ENDPOINT_URL is to be

	moto   *moto.Server
	server *http.Server
	paths  *http.ServeMux    // answers by path
	names  map[string]answer // answers by name
	amends []amendment

	one sync.Mutex // moto answers one call at a time: its lists break when something comes or goes meanwhile

	mu      sync.Mutex // of all below
	kept    store
	stacks  map[string]*stack
	signers map[string]*ecdsa.PrivateKey
	calls   map[string]int // by name
	failed  []string
}

// Start starts moto and the proxy on free ports of the loopback address; ctx bounds the start. invocations answers Lambda's Invoke.
func Start(ctx context.Context, invocations http.Handler) (*AWS, error) {
	// A certificate is proven the second time somebody looks, and the policies that AWS offers are there.
	server, err := moto.Run(ctx, "MOTO_ACM_VALIDATION_WAIT=1", "MOTO_IAM_LOAD_MANAGED_POLICIES=true")
	if err != nil {
		return nil, err
	}
	a, err := front(ctx, server, invocations)
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return a, nil
}

// front is the proxy.
func front(ctx context.Context, server *moto.Server, invocations http.Handler) (*AWS, error) {
	target, err := url.Parse(server.URL)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &AWS{URL: "http://" + listener.Addr().String(), moto: server, paths: http.NewServeMux(), names: map[string]answer{},
		kept: store{}, stacks: map[string]*stack{}, signers: map[string]*ecdsa.PrivateKey{}, calls: map[string]int{}}
	a.paths.Handle("POST /2015-03-31/functions/{name}/invocations", invocations)
	for _, service := range Services {
		a.amends = append(a.amends, service.amends...)
		for call, answer := range service.answers {
			if _, path, ok := strings.Cut(call, " "); ok && !strings.HasPrefix(path, "/") {
				a.names[call] = answer
				continue
			}
			a.paths.HandleFunc(call, func(w http.ResponseWriter, r *http.Request) { a.answer(answer, w, r) })
		}
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // moto makes addresses of it
			if amend := a.amendment(r.In); amend != nil {
				r.Out.Header.Del("Accept-Encoding")
				if amend.question != nil {
					amend.question(r.Out)
				}
				if amend.told != nil {
					keepSaid(r.Out)
				}
			}
		},
		ModifyResponse: a.amend,
	}
	a.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.route(w, r, proxy) })}
	go func() { _ = a.server.Serve(listener) }() // ends at Stop
	return a, nil
}

// Stop ends both.
func (a *AWS) Stop() error { return errors.Join(a.server.Close(), a.moto.Stop()) }

func (a *AWS) route(w http.ResponseWriter, r *http.Request, proxy http.Handler) {
	r, err := named(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.calls[nameOf(r)]++
	a.mu.Unlock()
	if answer, ok := a.names[nameOf(r)]; ok {
		a.answer(answer, w, r)
		return
	}
	if _, pattern := a.paths.Handler(r); pattern != "" {
		a.paths.ServeHTTP(w, r)
		return
	}
	a.one.Lock()
	defer a.one.Unlock()
	proxy.ServeHTTP(w, r)
}

func (a *AWS) answer(answer answer, w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer(a, w, r)
}

// amendment is what a call needs, nil if nothing.
func (a *AWS) amendment(r *http.Request) *amendment {
	for i := range a.amends {
		if a.amends[i].of.MatchString(nameOf(r)) {
			return &a.amends[i]
		}
	}
	return nil
}

// amend changes what Services amends, and refuses what moto does not know: it says so (501), has no such address, which it tells in HTML, or breaks.
func (a *AWS) amend(r *http.Response) error {
	if amend := a.amendment(r.Request); amend != nil && r.StatusCode < http.StatusMultipleChoices {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		if amend.answer != nil {
			text = amend.answer(text)
		}
		if amend.told != nil {
			text = a.retell(r.Request, amend, text)
		}
		replace(r, text)
		return nil
	}
	page := r.StatusCode == http.StatusNotFound && strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") && r.Request.Method != http.MethodHead
	if r.StatusCode < http.StatusInternalServerError && !page {
		return nil
	}
	call := nameOf(r.Request)
	a.mu.Lock()
	if !slices.Contains(a.failed, call) {
		a.failed = append(a.failed, call)
	}
	a.mu.Unlock()
	message := "the stand-in for AWS does not know: " + call
	// In each protocol's form, as the caller's mistake: nobody tries again.
	r.StatusCode, r.Status = http.StatusBadRequest, ""
	r.Header.Set("X-Amzn-ErrorType", "NotPlayed")
	switch service, _, _ := strings.Cut(call, " "); {
	case service == "s3":
		r.Header.Set("Content-Type", "application/xml")
		replace(r, fmt.Appendf(nil, "<Error><Code>NotPlayed</Code><Message>%s</Message></Error>", html.EscapeString(message)))
	case strings.HasPrefix(r.Request.Header.Get("Content-Type"), "application/x-www-form"), slices.Contains([]string{"cloudfront", "route53"}, service):
		r.Header.Set("Content-Type", "text/xml")
		replace(r, fmt.Appendf(nil, "<ErrorResponse><Error><Type>Sender</Type><Code>NotPlayed</Code><Message>%s</Message></Error></ErrorResponse>", html.EscapeString(message)))
	default:
		r.Header.Set("Content-Type", "application/json")
		replace(r, fmt.Appendf(nil, `{"__type": "NotPlayed", "message": %q}`, message))
	}
	return nil
}

// retell amends JSON by what was told.
func (a *AWS) retell(r *http.Request, amend *amendment, text []byte) []byte {
	given := object{}
	if json.Unmarshal(text, &given) != nil {
		return text
	}
	said, _ := r.Context().Value(saidKey{}).(*object)
	a.mu.Lock()
	defer a.mu.Unlock()
	amend.told(a, r, *said, given)
	amended, err := json.Marshal(given)
	if err != nil {
		return text
	}
	return amended
}

func replace(r *http.Response, text []byte) {
	_ = r.Body.Close() // it has been read, or is of no interest
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
}

// Unanswered are the calls so far that nobody knew, each once.
func (a *AWS) Unanswered() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.failed)
}

// Log is the end of moto's log.
func (a *AWS) Log() string { return a.moto.Log() }

// Calls is how many calls there were so far, by name.
func (a *AWS) Calls() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.calls)
}
