package agentcore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Patience is how long a runtime may take to accept a turn: AgentCore may have to start a microVM.
const Patience = 2 * time.Minute

// HTTP is a runtime at a URL: a process or container on this machine.
type HTTP struct {
	URL    string       // without /invocations. Required
	Client *http.Client // default http.DefaultClient
	// Relay is given each progress event (an event of package publish); Start then returns at the turn's end. It is for a runtime that
	// reaches no subscribers itself. Nil: none.
	Relay func(event []byte)
	// Wait is how long to wait for a runtime that does not listen yet. Default 0: it is an error at once.
	Wait time.Duration
}

// Start implements Runtime.
func (h HTTP) Start(ctx context.Context, session string, dispatch []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	impatient := time.AfterFunc(Patience, cancel)
	defer impatient.Stop()
	response, err := h.post(ctx, session, dispatch)
	for began := time.Now(); notThere(err) && time.Since(began) < h.Wait; response, err = h.post(ctx, session, dispatch) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("agentcore: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		problem, _ := io.ReadAll(io.LimitReader(response.Body, 2<<10))
		return fmt.Errorf("agentcore: %s answered %s: %s", h.URL, response.Status, problem)
	}
	events := scan(response.Body)
	if err := answer(events); err != nil || h.Relay == nil {
		return err
	}
	impatient.Stop()
	return relay(events, h.Relay)
}

// pause is between two looks for a runtime that does not listen yet.
const pause = 200 * time.Millisecond

func notThere(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}

func (h HTTP) post(ctx context.Context, session string, dispatch []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"/invocations", bytes.NewReader(dispatch))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set(SessionHeader, session)
	client := h.Client
	if client == nil {
		client = http.DefaultClient
	}
	return client.Do(request)
}
