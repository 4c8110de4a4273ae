package titan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/embed"
	"github.com/agentplatform/agentplatform/pkg/model"
)

func TestWhatIsSent(t *testing.T) {
	s := speak(t, Config{Dimension: 256}, func(w http.ResponseWriter, _ *http.Request, asked request) {
		answered(w, axis(256, 3), tokensOf(asked.InputText))
	})
	r, err := s.Embed(t.Context(), embed.Query, []string{"Wie heißt du? <&>"})
	require.NoError(t, err)
	require.Equal(t, 4, r.Tokens)
	require.Len(t, s.calls, 1)
	c := s.calls[0]
	require.Equal(t, http.MethodPost, c.method)
	require.Equal(t, "/model/amazon.titan-embed-text-v2%3A0/invoke", c.path)
	require.JSONEq(t, `{"inputText":"Wie heißt du? <&>","dimensions":256,"normalize":true}`, c.body)
	require.Equal(t, "application/json", c.header.Get("Content-Type"))
	require.Equal(t, "application/json", c.header.Get("Accept"))
	require.Contains(t, c.header.Get("Authorization"), "/eu-central-1/bedrock/")
	require.Equal(t, "amazon.titan-embed-text-v2:0/256", embed.Space(s))
}

// Each text is a call of its own, no more than Concurrency at a time, and vectors are in the order of their texts whatever order the answers have.
func TestCallsAtATime(t *testing.T) {
	const atATime = 3
	var running, most atomic.Int64
	var full sync.WaitGroup // until the first calls are all there: so many do run at once
	full.Add(atATime)
	var first atomic.Int64
	s := speak(t, Config{Dimension: 256, Concurrency: atATime}, func(w http.ResponseWriter, _ *http.Request, asked request) {
		now := running.Add(1)
		for {
			before := most.Load()
			if now <= before || most.CompareAndSwap(before, now) {
				break
			}
		}
		if first.Add(1) <= atATime {
			full.Done()
			full.Wait()
		}
		var i int
		_, _ = fmt.Sscanf(asked.InputText, "text %d", &i)
		running.Add(-1)
		answered(w, axis(256, i), 2)
	})
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprintf("text %d", i))
	}
	r, err := s.Embed(t.Context(), embed.Document, texts)
	require.NoError(t, err)
	require.Equal(t, 80, r.Tokens)
	for i, v := range r.Vectors {
		require.Equal(t, i, slices.Index(v, 1))
	}
	require.EqualValues(t, atATime, most.Load())
	got := s.texts()
	slices.Sort(got)
	slices.Sort(texts)
	require.Equal(t, texts, got)
}

func TestErrorsOfTheProvider(t *testing.T) {
	const secret = "arn:aws:iam::123456789012:role/operator"
	for _, c := range []struct {
		status int
		code   string
		reason model.Reason
		retry  bool
	}{
		{429, "ThrottlingException", model.Throttled, true},
		{400, "ServiceQuotaExceededException", model.Throttled, false},
		{503, "ServiceUnavailableException", model.Unavailable, true},
		{500, "InternalServerException", model.Unavailable, true},
		{429, "ModelNotReadyException", model.Unavailable, true},
		{424, "ModelErrorException", model.Unavailable, true},
		{408, "ModelTimeoutException", model.TimedOut, true},
		{400, "ValidationException", model.Invalid, false},
		{404, "ResourceNotFoundException", model.Missing, false},
		{403, "AccessDeniedException", model.Denied, false},
		{403, "ExpiredTokenException", model.Denied, false},
		{401, "", model.Denied, false},
		{502, "", model.Unavailable, true},
		{418, "", model.Invalid, false},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			var log bytes.Buffer
			s := speak(t, Config{Attempts: 3, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(w http.ResponseWriter, _ *http.Request, _ request) {
				refused(w, c.status, c.code, secret+" may not")
			})
			r, err := s.Embed(t.Context(), embed.Document, []string{"confidential"})
			require.Nil(t, r.Vectors)
			e := failure(t, err)
			require.Equal(t, c.reason, e.Reason)
			require.Equal(t, c.retry, e.Temporary())
			require.Equal(t, embed.Failure(c.reason, false, nil).Message, e.Message)
			require.NotContains(t, e.Error(), secret)
			require.ErrorContains(t, e.Unwrap(), secret, "the log has the cause")
			require.NotContains(t, log.String(), "confidential")
			attempts := 1
			if c.retry {
				attempts = 3
				require.Contains(t, log.String(), string(c.reason))
			}
			require.Equal(t, attempts, e.Attempts)
			require.Len(t, s.calls, attempts)
		})
	}
}

func TestThrottlingPasses(t *testing.T) {
	var asked atomic.Int64
	s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request, _ request) {
		if asked.Add(1) < 4 {
			refused(w, 429, "ThrottlingException", "Too many requests")
			return
		}
		answered(w, axis(1024, 0), 7)
	})
	r, err := s.Embed(t.Context(), embed.Document, []string{"a"})
	require.NoError(t, err)
	require.Equal(t, 7, r.Tokens)
	require.Len(t, r.Vectors[0], 1024)
}

// One text that is refused ends the calls for the others, and the tokens that were used are told.
func TestOneRefusedEndsAll(t *testing.T) {
	waiting := make(chan struct{})
	s := speak(t, Config{Concurrency: 2}, func(w http.ResponseWriter, r *http.Request, asked request) {
		switch asked.InputText {
		case "good":
			answered(w, axis(1024, 0), 5)
		case "waits":
			close(waiting)
			<-r.Context().Done() // until the caller goes
		case "bad":
			<-waiting
			refused(w, 400, "ValidationException", "no")
		default:
			t.Error("asked about what comes behind")
		}
	})
	r, err := s.Embed(t.Context(), embed.Document, []string{"good", "waits", "bad", "behind", "behind"})
	require.Equal(t, model.Invalid, failure(t, err).Reason)
	require.Nil(t, r.Vectors)
	require.Equal(t, 5, r.Tokens)
}

func TestWhatIsNoAnswer(t *testing.T) {
	long := axis(1024, 0)
	long[1] = 1
	for name, write := range map[string]func(w http.ResponseWriter){
		"no json":       func(w http.ResponseWriter) { _, _ = w.Write([]byte(`<html>`)) },
		"nothing":       func(http.ResponseWriter) {},
		"no vector":     func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"inputTextTokenCount":3}`)) },
		"a short one":   func(w http.ResponseWriter) { answered(w, axis(512, 0), 3) },
		"nothing but 0": func(w http.ResponseWriter) { answered(w, make([]float64, 1024), 3) },
		"not of 1":      func(w http.ResponseWriter) { answered(w, long, 3) },
		"not a number":  func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"embedding":["NaN"]}`)) },
		"tokens below":  func(w http.ResponseWriter) { answered(w, axis(1024, 0), -1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := speak(t, Config{Attempts: 2}, func(w http.ResponseWriter, _ *http.Request, _ request) { write(w) })
			r, err := s.Embed(t.Context(), embed.Document, []string{"a"})
			e := failure(t, err)
			require.Equal(t, model.Malformed, e.Reason)
			require.True(t, e.Temporary())
			require.Equal(t, 2, e.Attempts)
			require.Nil(t, r.Vectors)
		})
	}
	t.Run("without end", func(t *testing.T) {
		s := speak(t, Config{Attempts: 1}, func(w http.ResponseWriter, r *http.Request, _ request) {
			for r.Context().Err() == nil { // the reader goes, or this does not end
				if _, err := w.Write(bytes.Repeat([]byte(" "), 64<<10)); err != nil {
					return
				}
			}
		})
		_, err := s.Embed(t.Context(), embed.Document, []string{"a"})
		require.Equal(t, model.Unavailable, failure(t, err).Reason)
	})
}

// A text with too many tokens is embedded by its beginning, and one that stays too long is refused as that.
func TestTooManyTokens(t *testing.T) {
	text := strings.Repeat("𝔤", embed.MaxCharacters)
	s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request, asked request) {
		if tokens := len(asked.InputText); tokens > 8192 {
			refused(w, 400, "ValidationException", fmt.Sprintf("400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: %d ", tokens))
			return
		}
		answered(w, axis(1024, 0), len(asked.InputText))
	})
	r, err := s.Embed(t.Context(), embed.Document, []string{text})
	require.NoError(t, err)
	require.Equal(t, 8000, r.Tokens)
	require.Equal(t, []string{text, text[:len(text)/2], text[:len(text)/4]}, s.texts())

	never := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request, _ request) {
		refused(w, 400, "ValidationException", "Malformed input request: expected maxLength: 50000, actual: 60000, please reformat your input and try again.")
	})
	_, err = never.Embed(t.Context(), embed.Document, []string{text})
	require.Equal(t, model.TooLong, failure(t, err).Reason)
	require.Len(t, never.calls, 1+halvings)
}

func TestAnAnswerThatDoesNotCome(t *testing.T) {
	s := speak(t, Config{Attempts: 2, CallWait: time.Millisecond}, func(_ http.ResponseWriter, r *http.Request, _ request) { <-r.Context().Done() })
	_, err := s.Embed(t.Context(), embed.Document, []string{"a"})
	e := failure(t, err)
	require.Equal(t, model.TimedOut, e.Reason)
	require.True(t, e.Temporary())
	require.Equal(t, 2, e.Attempts)
}

// Whoever gives up is not kept waiting, nor is the model asked again for them.
func TestACallerThatGoes(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := speak(t, Config{}, func(_ http.ResponseWriter, r *http.Request, _ request) {
		cancel(gone)
		<-r.Context().Done()
	})
	_, err := s.Embed(ctx, embed.Document, []string{"a"})
	e := failure(t, err)
	require.Equal(t, model.Canceled, e.Reason)
	require.False(t, e.Temporary())
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, s.calls, 1)
}

func TestConfigIsChecked(t *testing.T) {
	_, err := New(Config{})
	require.ErrorContains(t, err, "no client")
	s := speak(t, Config{}, nil)
	_, err = New(Config{Client: s.config.Client, Dimension: 384})
	require.ErrorContains(t, err, "[1024 512 256] numbers, not of 384")
	require.Equal(t, 1024, s.Dimension())
}

// Whatever an answer holds, what is taken from it is a vector of length 1.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"embedding":[0.6,0.8],"inputTextTokenCount":3}`))
	f.Add([]byte(`{"embedding":[1e308,-1e308],"inputTextTokenCount":3}`))
	f.Add([]byte(`{"embedding":[1e400,0]}`))
	f.Add([]byte(`{"embedding":[null,1]}`))
	f.Add([]byte(`{"embedding":{"0":1}}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, body []byte) {
		vector, tokens, err := read(body, 2)
		require.GreaterOrEqual(t, tokens, 0)
		if err != nil {
			require.Nil(t, vector)
			return
		}
		require.Len(t, vector, 2)
		require.InDelta(t, 1, float64(vector[0])*float64(vector[0])+float64(vector[1])*float64(vector[1]), 1e-6)
	})
}
