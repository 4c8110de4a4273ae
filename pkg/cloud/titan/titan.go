// Package titan is Amazon Titan Text Embeddings V2, on Amazon Bedrock, behind package embed.
//
// The model takes one text a call and knows no kinds: an Embed is as many calls as texts, a few of them at a time. It brings no client of its own:
// Invoker is the SDK's, which package bedrock has already.
package titan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"

	"github.com/agentplatform/agentplatform/pkg/embed"
)

// Model is the model's id.
const Model = "amazon.titan-embed-text-v2:0"

// dimensions are those that the model can make, the usual one first.
// https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html
var dimensions = []int{1024, 512, 256}

// Invoker is what this package needs of a bedrockruntime.Client. It should make one attempt a call: Embedder repeats.
type Invoker interface {
	InvokeModel(context.Context, *bedrockruntime.InvokeModelInput, ...func(*bedrockruntime.Options)) (*bedrockruntime.InvokeModelOutput, error)
}

// Config says how to ask.
type Config struct {
	Client      Invoker       // Required
	Dimension   int           // 1024, 512 or 256; default 1024
	Concurrency int           // calls at a time of one Embed; default 8
	Attempts    int           // of the call for one text, the first included; default 5
	BaseDelay   time.Duration // upper bound of the first pause, tripled for each further one; default 200 ms
	MaxDelay    time.Duration // upper bound of every pause; default 5 s
	CallWait    time.Duration // longest wait for the answer to one attempt; default 15 s
	Log         *slog.Logger  // told of every failed attempt that is repeated; default: nobody
}

// Embedder implements embed.Embedder.
type Embedder struct{ config Config }

// New completes c; it asks nothing yet.
func New(c Config) (*Embedder, error) {
	if c.Client == nil {
		return nil, errors.New("titan: no client")
	}
	if c.Dimension == 0 {
		c.Dimension = dimensions[0]
	}
	if !slices.Contains(dimensions, c.Dimension) {
		return nil, fmt.Errorf("titan: the model makes vectors of %v numbers, not of %d", dimensions, c.Dimension)
	}
	if c.Concurrency <= 0 {
		c.Concurrency = 8
	}
	if c.Attempts <= 0 {
		c.Attempts = 5
	}
	if c.BaseDelay <= 0 {
		c.BaseDelay = 200 * time.Millisecond
	}
	if c.MaxDelay <= 0 {
		c.MaxDelay = 5 * time.Second
	}
	if c.CallWait <= 0 {
		c.CallWait = 15 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Embedder{c}, nil
}

// Model implements embed.Embedder.
func (e *Embedder) Model() string { return Model }

// Dimension implements embed.Embedder.
func (e *Embedder) Dimension() int { return e.config.Dimension }

// Embed implements embed.Embedder. The first text that cannot be embedded ends the calls for the others.
func (e *Embedder) Embed(ctx context.Context, _ embed.Kind, texts []string) (embed.Result, error) {
	prepared, err := embed.Prepare(texts)
	if err != nil {
		return embed.Result{}, err
	}
	calls, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		vectors      = make([][]float32, len(prepared))
		next, tokens atomic.Int64
		group        sync.WaitGroup
	)
	for range min(e.config.Concurrency, len(prepared)) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(prepared)) && calls.Err() == nil; i = next.Add(1) - 1 {
				vector, used, err := e.fitting(calls, prepared[i])
				tokens.Add(int64(used))
				if err != nil {
					cancel(err) // the first one's counts
					return
				}
				vectors[i] = vector
			}
		})
	}
	group.Wait()
	result := embed.Result{Tokens: int(tokens.Load())}
	if calls.Err() != nil {
		return result, embed.Failed(ctx, context.Cause(calls))
	}
	result.Vectors = vectors
	return result, nil
}
