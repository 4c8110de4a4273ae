// Package appsync is AWS AppSync behind package publish: Publisher sends the publish mutations, and Publish puts it behind the need of that name.
package appsync

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/cenkalti/backoff/v5"

	"github.com/agentplatform/agentplatform/pkg/publish"
)

// Publisher publishes through the API's IAM-only publish mutations. The API answers with the event, and AppSync passes that answer on.
type Publisher struct{ config Config }

// Config says which API, and as whom.
type Config struct {
	URL         string                  // {appsync_url}, without /graphql. Required
	Region      string                  // the API's region, for the signature. Required
	Credentials aws.CredentialsProvider // of a role that may call the publish mutations. Required

	HTTPClient *http.Client     // default: one with a timeout of 5 s a try
	Tries      int              // tries an event; default 4
	FirstDelay time.Duration    // before the second try, then growing by half and jittered; default 100 ms
	Clock      func() time.Time // of the signature; default time.Now
}

// New makes the adapter; it fails on an incomplete config only.
func New(c Config) (*Publisher, error) {
	if c.URL == "" || c.Region == "" || c.Credentials == nil {
		return nil, errors.New("publish: URL, Region and Credentials are required")
	}
	c.URL = strings.TrimSuffix(c.URL, "/") + "/graphql"
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{Timeout: 5 * time.Second}
	}
	if c.Tries <= 0 {
		c.Tries = 4
	}
	if c.FirstDelay <= 0 {
		c.FirstDelay = 100 * time.Millisecond
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Publisher{c}, nil
}

// Publish implements publish.Publisher: one request an event, because AppSync filters and orders by mutation.
func (a *Publisher) Publish(ctx context.Context, events ...publish.Event) error {
	for i, e := range events {
		if err := a.publish(ctx, e); err != nil {
			return fmt.Errorf("publish %T (%d of %d): %w", e, i+1, len(events), err)
		}
	}
	return nil
}

func (a *Publisher) publish(ctx context.Context, e publish.Event) error {
	address := e.Address()
	if err := address.Check(); err != nil {
		return err
	}
	event, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"query":     mutations[address.Topic],
		"variables": map[string]string{"event": string(event)}, // AWSJSON travels as a string
	})
	if err != nil {
		return err
	}
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval = a.config.FirstDelay
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		err := a.post(ctx, address.Topic, body)
		var f *failure
		if errors.As(err, &f) && (f.refused || f.unclear && e.Repeatable()) {
			return struct{}{}, err
		}
		if err != nil {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, nil
	}, backoff.WithBackOff(delays), backoff.WithMaxTries(uint(a.config.Tries)))
	return err
}

// failure is a try that went wrong in a way that may pass.
type failure struct {
	refused bool // AppSync did nothing: safe to try again
	unclear bool // the event may have gone out
	err     error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// post sends one signed request and reads its answer.
func (a *Publisher) post(ctx context.Context, topic publish.Topic, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.config.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	credentials, err := a.config.Credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(sum[:]), "appsync", a.config.Region, a.config.Clock()); err != nil {
		return err
	}
	response, err := a.config.HTTPClient.Do(request)
	if err != nil {
		return &failure{unclear: true, err: err}
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return &failure{unclear: true, err: err}
	}
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return &failure{refused: true, err: fmt.Errorf("appsync answered %d", status)}
	case status >= 500:
		return &failure{unclear: true, err: fmt.Errorf("appsync answered %d", status)}
	case status != http.StatusOK:
		return fmt.Errorf("appsync answered %d: %.512s", status, answer)
	}
	return check(topic, answer)
}

// check reads a GraphQL answer: an event that came back with errors may have reached subscribers incomplete, so it counts as not published.
func check(topic publish.Topic, answer []byte) error {
	var a struct {
		Data   map[string]json.RawMessage `json:"data"`
		Errors []struct {
			ErrorType string `json:"errorType"`
			Message   string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return fmt.Errorf("appsync answered no JSON: %w", err)
	}
	if len(a.Errors) > 0 {
		return fmt.Errorf("appsync answered %s: %s", a.Errors[0].ErrorType, a.Errors[0].Message)
	}
	if raw := a.Data[string(topic)]; len(raw) == 0 || string(raw) == "null" {
		return errors.New("appsync answered no event")
	}
	return nil
}
