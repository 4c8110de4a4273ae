// Package bedrock is Amazon Bedrock behind package model: Client asks it, or anything that answers its wire format (local mode serves an offline
// model that way), and Model puts it behind the need of that name.
package bedrock

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// Config says where Bedrock is and who calls it.
type Config struct {
	Region      string                  // AWS region, required; names the endpoint and the signature
	Endpoint    string                  // URL instead of the region's own endpoint; empty = the region's
	Credentials aws.CredentialsProvider // who signs; required unless Endpoint is set, then default: a fixed dummy
	Connections int                     // idle connections kept; at least the calls at one time, else each call dials; default 64
	HeaderWait  time.Duration           // longest wait for the answer to begin; default 60 s
	StallWait   time.Duration           // longest silence within an answer; default 60 s
}

// Client is the Model of Amazon Bedrock's ConverseStream operation. One attempt a call: wrap it in Retry.
type Client struct {
	client    *bedrockruntime.Client
	transport *http.Transport
	stallWait time.Duration
}

// dummyCredentials satisfy the signer where the endpoint checks no signature. They are AWS's own documentation example.
var dummyCredentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", Source: "local endpoint",
	}, nil
})

// New makes the client; it opens no connection yet.
func New(c Config) (*Client, error) {
	if c.Region == "" {
		return nil, errors.New("model: Bedrock needs a region")
	}
	dummy := c.Credentials == nil
	if dummy {
		if c.Endpoint == "" {
			return nil, errors.New("model: Bedrock needs credentials, or an endpoint that asks for none")
		}
		c.Credentials = dummyCredentials
	}
	if c.Connections <= 0 {
		c.Connections = 64
	}
	if c.HeaderWait <= 0 {
		c.HeaderWait = time.Minute
	}
	if c.StallWait <= 0 {
		c.StallWait = time.Minute
	}
	b := &Client{transport: newTransport(c), stallWait: c.StallWait}
	options := bedrockruntime.Options{
		Region:      c.Region,
		Credentials: c.Credentials,
		HTTPClient:  sender{b.transport},
		Retryer:     aws.NopRetryer{}, // the SDK's could not repeat an answer that has begun; Retry can
	}
	if c.Endpoint != "" {
		options.BaseEndpoint = aws.String(c.Endpoint)
	}
	b.client = bedrockruntime.New(options, func(o *bedrockruntime.Options) {
		if dummy { // the SDK picks up a bearer token from the environment by itself; a real one must not go to a local endpoint
			o.BearerAuthTokenProvider, o.AuthSchemePreference = nil, nil
		}
	})
	return b, nil
}

// Close drops idle connections. Calls under way go on.
func (b *Client) Close() { b.transport.CloseIdleConnections() }

// Converse implements Model with one attempt; it never calls s.Restart.
func (b *Client) Converse(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
	if s == nil {
		s = model.Discard
	}
	input, err := encode(r)
	if err != nil {
		return model.Response{}, model.Failure(model.Invalid, false, err)
	}
	// Ends the SDK's reading goroutines on every way out: they sit in a read that only the request's context interrupts.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	output, err := b.client.ConverseStream(ctx, input)
	if err != nil {
		return model.Response{}, classify(ctx, err, false)
	}
	stream := output.GetStream()
	defer stream.Close()
	var a answer
	if err := b.receive(ctx, stream, &a, s); err != nil {
		return model.Response{}, classify(ctx, err, true)
	}
	response, err := a.response()
	if err != nil {
		return model.Response{}, classify(ctx, err, true)
	}
	return response, nil
}

// receive feeds the stream's events to a until the stream ends.
func (b *Client) receive(ctx context.Context, stream *bedrockruntime.ConverseStreamEventStream, a *answer, s model.Stream) error {
	stall := time.NewTimer(b.stallWait)
	defer stall.Stop()
	for {
		var event types.ConverseStreamOutput
		var open bool
		select {
		case event, open = <-stream.Events():
		case <-ctx.Done():
			return ctx.Err()
		case <-stall.C:
			return model.Failure(model.TimedOut, true, errors.New("model: no event for "+b.stallWait.String()))
		}
		if !open {
			return stream.Err()
		}
		a.take(event, s)
		stall.Reset(b.stallWait)
	}
}
