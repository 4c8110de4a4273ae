package titan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/cenkalti/backoff/v5"

	"github.com/agentplatform/agentplatform/pkg/embed"
	"github.com/agentplatform/agentplatform/pkg/model"
)

// request and answer are the model's own form, in the body of an InvokeModel.
type request struct {
	InputText  string `json:"inputText"`
	Dimensions int    `json:"dimensions"`
	Normalize  bool   `json:"normalize"`
}

type answer struct {
	Embedding           []float64 `json:"embedding"`
	InputTextTokenCount int       `json:"inputTextTokenCount"`
}

// largest is how long an answer may be, in bytes: 1,024 numbers come twice, in some twenty characters each.
const largest = 256 << 10

// halvings is how often a text is halved that has too many tokens. The model reads 8,192, and 8,000 characters are fewer in nearly every language;
// in those of rare characters one is up to four.
const halvings = 3

// fitting embeds text, or as much of its beginning as the model reads. Tokens are told with an error too.
func (e *Embedder) fitting(ctx context.Context, text string) (vector []float32, tokens int, err error) {
	for half := 0; ; half++ {
		vector, tokens, err = e.patient(ctx, text)
		var failed *model.Error
		if half == halvings || !errors.As(err, &failed) || failed.Reason != model.TooLong {
			return vector, tokens, err
		}
		text = embed.Cut(text, max(utf8.RuneCountInString(text)/2, 1))
	}
}

// patient asks until there is an answer, or none to hope for.
func (e *Embedder) patient(ctx context.Context, text string) ([]float32, int, error) {
	attempts, tokens := 0, 0
	var last *model.Error
	vector, err := backoff.Retry(ctx, func() ([]float32, error) {
		attempts++
		vector, used, failed := e.once(ctx, text)
		tokens += used
		if failed == nil {
			return vector, nil
		}
		if last = failed; !last.Temporary() {
			return nil, backoff.Permanent(last)
		}
		return nil, last
	}, backoff.WithMaxTries(uint(e.config.Attempts)), backoff.WithMaxElapsedTime(0), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: e.config.BaseDelay / 2, RandomizationFactor: 1, Multiplier: 3, MaxInterval: e.config.MaxDelay / 2,
	}), backoff.WithNotify(e.again(ctx, &last)))
	if err == nil {
		return vector, tokens, nil
	}
	if last == nil || last.Temporary() && ctx.Err() != nil { // the context ended the attempts, not their number
		last = embed.Failed(ctx, errors.Join(ctx.Err(), err))
	}
	final := *last
	final.Attempts = max(attempts, 1)
	return nil, tokens, &final
}

// once asks one time. The error is nil or complete: an *Error that is nil would not be.
func (e *Embedder) once(ctx context.Context, text string) ([]float32, int, *model.Error) {
	body, err := json.Marshal(request{text, e.config.Dimension, true})
	if err != nil {
		return nil, 0, embed.Failure(model.Invalid, false, err)
	}
	call, cancel := context.WithTimeout(ctx, e.config.CallWait)
	defer cancel()
	output, err := e.config.Client.InvokeModel(call, &bedrockruntime.InvokeModelInput{
		ModelId: aws.String(Model), ContentType: aws.String("application/json"), Accept: aws.String("application/json"), Body: body}, bounded)
	if err != nil && call.Err() != nil && ctx.Err() == nil {
		return nil, 0, embed.Failure(model.TimedOut, true, err)
	}
	if err != nil {
		return nil, 0, classify(ctx, err)
	}
	vector, tokens, err := read(output.Body, e.config.Dimension)
	if err != nil {
		return nil, tokens, embed.Failure(model.Malformed, true, err)
	}
	return vector, tokens, nil
}

// read takes an answer only if it is whole: a vector of that dimension and of length 1. What rounding has left of that is made good.
func read(body []byte, dimension int) ([]float32, int, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, 0, fmt.Errorf("titan: an answer of %d bytes: %w", len(body), err)
	}
	if a.InputTextTokenCount < 0 {
		return nil, 0, fmt.Errorf("titan: %d tokens", a.InputTextTokenCount)
	}
	if len(a.Embedding) != dimension {
		return nil, a.InputTextTokenCount, fmt.Errorf("titan: %d numbers, not %d", len(a.Embedding), dimension)
	}
	var squares float64
	for _, x := range a.Embedding {
		squares += x * x
	}
	if length := math.Sqrt(squares); math.Abs(length-1) > 0.01 {
		return nil, a.InputTextTokenCount, fmt.Errorf("titan: a vector of length %g, not 1", length)
	}
	vector, _ := embed.Unit(a.Embedding) // it has a direction, as it has a length
	return vector, a.InputTextTokenCount, nil
}
