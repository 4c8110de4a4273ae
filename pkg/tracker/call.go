package tracker

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/provider"
)

// Config is where a provider's API is.
type Config struct {
	APIURL  string // its origin; empty: the provider's own
	Account string // the workspace or site that the token is for: of another one no task is taken. Empty: it is not known, or there are several
}

// at is the address of a path of the API.
func (c Config) at(origin, path string) string {
	if c.APIURL != "" {
		origin = strings.TrimSuffix(c.APIURL, "/")
	}
	return origin + path
}

// call asks an API with a person's token. The headers are there also when it fails.
func call(ctx context.Context, client *http.Client, method, address, access string, in, out any) (http.Header, error) {
	r, err := provider.Request(ctx, method, address, in)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+access)
	return provider.Do(ctx, client, r, out)
}

// resetAfter is how long it is until the moment, in milliseconds, that a header names.
func resetAfter(h http.Header, name string) time.Duration {
	at, err := strconv.ParseInt(h.Get(name), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(time.Until(time.UnixMilli(at)), 0), time.Hour)
}

// live is an envelope as the provider has just given it: what it does not name the task has not.
func live(e Envelope) Envelope {
	e.Source = SourceLive
	e.Key.Set, e.Title.Set, e.URL.Set, e.Status.Set, e.StatusType.Set, e.Assignee.Set, e.Due.Set = true, true, true, true, true, true, true
	return e
}
