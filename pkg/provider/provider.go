// Package provider is calls of outside APIs, why one failed, and the signatures of what they send.
//
// What holds:
//
//   - An error says what may have become of the call: Away and Limited, nothing was done and it may be made again; Unknown, it may have been done, so that
//     who makes it again may make it twice; the others, nothing was done and nothing ever will be.
//   - An error's reason is for people. No URL is in it, and no header of the request.
//   - What answers is bounded, in bytes and in time. A call is sent elsewhere only within its origin, and only as it is.
//   - Signatures are compared in constant time.
//
// The client that is handed in is pkg/egress's.
package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/agentplatform/agentplatform/pkg/egress"
)

const (
	maxAnswer = 1 << 20 // bytes
	timeLimit = 30 * time.Second
)

// Request is a call with in as its JSON body; a nil in is no body.
func Request(ctx context.Context, method, url string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, &Error{Kind: Refused, Reason: "the URL cannot be understood"}
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	return r, nil
}

// Do makes a call, within the time that ctx leaves and at most half a minute. The JSON of the answer goes into out, that of a refusal too; nil: nobody reads it.
// Errors are *Error.
func Do(ctx context.Context, client *http.Client, r *http.Request, out any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	var connected atomic.Bool // from then on the provider may have the call
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	r = r.Clone(ctx)
	for name, value := range map[string]string{"Accept": "application/json", "User-Agent": "agentplatform"} {
		if r.Header.Get(name) == "" {
			r.Header.Set(name, value)
		}
	}
	response, err := within(client).Do(r)
	if err != nil {
		return nil, lost(err, connected.Load())
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = egress.ErrTooLarge
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		if out != nil && err == nil {
			_ = json.Unmarshal(body, out) // an answer that is no JSON says no more than its status
		}
		return response.Header, refused(r, response, body)
	}
	if err != nil {
		return response.Header, lost(err, true)
	}
	if out != nil && json.Unmarshal(body, out) != nil {
		return response.Header, &Error{Kind: Unknown, Reason: "the answer of the server cannot be understood", Status: response.StatusCode}
	}
	return response.Header, nil
}

// within is the client that follows redirects only within the origin, and only of the whole call: a POST never becomes a GET.
func within(client *http.Client) *http.Client {
	c := *client
	c.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		if next.Method != before[0].Method || next.URL.Scheme != before[0].URL.Scheme || next.URL.Host != before[0].URL.Host {
			return http.ErrUseLastResponse
		}
		if client.CheckRedirect != nil {
			return client.CheckRedirect(next, before)
		}
		if len(before) > 5 {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &c
}

// lost is a call without an answer.
func lost(err error, connected bool) error {
	e := &Error{Kind: Away, Reason: egress.Explain(err)}
	var refused *egress.Refused
	switch {
	case errors.As(err, &refused):
		e.Kind = Refused
	case connected:
		e.Kind = Unknown
	}
	return e
}

// refused is an answer that is an error.
func refused(r *http.Request, response *http.Response, body []byte) error {
	e := &Error{Kind: kind(response), Status: response.StatusCode, Reason: fmt.Sprintf("the server answers with HTTP status %d", response.StatusCode)}
	if e.Kind == Limited || e.Kind == Away {
		e.After = after(response.Header, time.Now())
	}
	if said := message(r, body); said != "" {
		e.Reason += ": " + said
	}
	return e
}
