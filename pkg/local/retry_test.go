package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/deadletter"
	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/local/letters"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// failing is a queue with one function, `one`, and the letters of what fails.
type failing struct {
	*queue
	t   *testing.T
	log *written
}

// written is a log.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(line)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func newFailing(t *testing.T, row manifest.Row, retryAfter time.Duration, run func(ctx context.Context, payload string) error) *failing {
	t.Helper()
	f := &failing{newQueue(), t, new(written)}
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(f.log, nil)))
	t.Cleanup(func() {
		f.close()
		slog.SetDefault(former)
	})
	box, err := letters.Open(letters.Config{Dir: filepath.Join(t.TempDir(), "dead-letters"), Prefix: functionPrefix})
	require.NoError(t, err)
	f.letters, f.retryAfter = box, retryAfter
	row.Name, row.Timeout = "one", 60
	f.serve(manifest.Manifest{Rows: []manifest.Row{row}}, map[string]lambda.Handler{"one": task(run)})
	return f
}

// task is a function that is invoked asynchronously.
type task func(ctx context.Context, payload string) error

func (f task) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return []byte("null"), f(ctx, string(payload))
}

func (f *failing) invoke(payload string) {
	f.t.Helper()
	require.NoError(f.t, f.Invoke(f.t.Context(), "one", json.RawMessage(payload)))
}

// kept are the letters, within a minute as many as are wanted.
func (f *failing) kept(want int) (all []deadletter.Letter) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		got, err := f.letters.Receive(f.t.Context(), 100, time.Hour)
		all = append(all, got...)
		return err == nil && len(all) == want
	}, time.Minute, time.Millisecond)
	return all
}

// lines are the log's, by level.
func (f *failing) lines() map[string][]map[string]any {
	f.t.Helper()
	f.close()
	found := map[string][]map[string]any{}
	for text := range strings.Lines(f.log.String()) {
		var line map[string]any
		require.NoError(f.t, json.Unmarshal([]byte(text), &line))
		found[line["level"].(string)] = append(found[line["level"].(string)], line)
	}
	return found
}

// A call that fails is tried three times in all; then it is a letter, as Lambda would write it, that can be sent again.
func TestACallThatFailsBecomesALetter(t *testing.T) {
	var calls atomic.Int32
	done := make(chan struct{})
	f := newFailing(t, manifest.Row{}, time.Millisecond, func(_ context.Context, payload string) error {
		if calls.Add(1) > tries {
			close(done)
			return nil
		}
		return errors.New("no database: " + payload)
	})
	before := time.Now().Truncate(time.Millisecond)
	f.invoke(`{"n":"Ü"}`)
	l := f.kept(1)[0]
	require.Equal(t, int32(tries), calls.Load())
	require.Equal(t, "one", l.Function)
	require.JSONEq(t, `{"n":"Ü"}`, string(l.Payload))
	require.Equal(t, deadletter.Error{Type: "errorString", Message: `no database: {"n":"Ü"}`}, l.Error)
	require.Equal(t, tries, l.Attempts)
	require.Equal(t, deadletter.Function, l.Source)
	require.WithinRange(t, l.At, before, time.Now())
	require.FileExists(t, filepath.Join(f.letters.Dir(), l.ID+".json"))

	require.NoError(t, deadletter.Retry(t.Context(), f.letters, f, l))
	<-done
	require.NoFileExists(t, filepath.Join(f.letters.Dir(), l.ID+".json"))
	lines := f.lines()
	require.Len(t, lines["WARN"], tries-1, "a failed try")
	require.Len(t, lines["ERROR"], 1, "the last one")
	require.Equal(t, l.ID, lines["ERROR"][0]["letter"])
	require.Equal(t, `no database: {"n":"Ü"}`, lines["ERROR"][0]["error"])
	require.Equal(t, lines["WARN"][0]["request_id"], lines["ERROR"][0]["request_id"])
	require.Contains(t, l.Body, lines["ERROR"][0]["request_id"])
}

func TestACallThatSucceedsInTheEnd(t *testing.T) {
	var calls atomic.Int32
	done := make(chan struct{})
	f := newFailing(t, manifest.Row{}, time.Millisecond, func(context.Context, string) error {
		if calls.Add(1) < tries {
			panic("not yet")
		}
		close(done)
		return nil
	})
	f.invoke(`{}`)
	<-done
	lines := f.lines()
	require.Len(t, lines["WARN"], tries-1)
	require.Empty(t, lines["ERROR"])
	f.kept(0)
}

// An error has the name that Lambda's runtime gives it.
func TestWhatALetterSaysOfItsError(t *testing.T) {
	for want, fail := range map[deadletter.Error]func() error{
		{Type: "string", Message: "panic: out of luck"}: func() error { panic("out of luck") },
		{Type: "PathError", Message: "open none: no"}:   func() error { return &os.PathError{Op: "open", Path: "none", Err: errors.New("no")} },
		{Type: "TurnFailed", Message: "the reason"}:     func() error { return messages.InvokeResponse_Error{Type: "TurnFailed", Message: "the reason"} },
		{Type: "Sandbox.Timedout", Message: "Task timed out after 60.00 seconds"}: func() error {
			return &host.FunctionError{Type: "Sandbox.Timedout", Payload: []byte(`{"errorType":"Sandbox.Timedout","errorMessage":"Task timed out after 60.00 seconds"}`)}
		},
	} {
		t.Run(want.Type, func(t *testing.T) {
			f := newFailing(t, manifest.Row{}, time.Microsecond, func(context.Context, string) error { return fail() })
			f.invoke(`{}`)
			require.Equal(t, want, f.kept(1)[0].Error)
		})
	}
}

// The platform's stop is no failure, neither of what runs nor of what waits for its next try.
func TestStoppingIsNoFailure(t *testing.T) {
	began := make(chan struct{})
	f := newFailing(t, manifest.Row{}, time.Hour, func(ctx context.Context, payload string) error {
		began <- struct{}{}
		if payload == `"fails"` {
			return errors.New("it fails")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	f.invoke(`"fails"`)
	f.invoke(`"runs"`)
	<-began
	<-began
	lines := f.lines() // closes the queue
	require.Empty(t, lines["ERROR"])
	require.LessOrEqual(t, len(lines["WARN"]), 1)
	f.kept(0)
	require.ErrorIs(t, f.Invoke(t.Context(), "one", struct{}{}), errStopping)
}

// In a row with a concurrency of one others run while a failed call waits for its next try, and never two at a time.
func TestARowOfOneDoesNotWaitForARetry(t *testing.T) {
	one := 1
	ran := make(chan string, 100)
	f := newFailing(t, manifest.Row{Reserved: &one}, time.Hour, func(_ context.Context, payload string) error {
		ran <- payload
		if payload == `"fails"` {
			return errors.New("it fails")
		}
		return nil
	})
	f.invoke(`"fails"`)
	require.Equal(t, `"fails"`, <-ran)
	f.invoke(`"next"`)
	require.Equal(t, `"next"`, <-ran)

	var running, most atomic.Int32
	f = newFailing(t, manifest.Row{Reserved: &one}, time.Microsecond, func(context.Context, string) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		return errors.New("it fails")
	})
	for _, payload := range []string{`1`, `2`, `3`, `4`, `5`} {
		f.invoke(payload)
	}
	for _, l := range f.kept(5) {
		require.Equal(t, tries, l.Attempts)
	}
	require.Equal(t, int32(1), most.Load())
}

// A letter that cannot be written is an error of the log's.
func TestALetterThatCannotBeWritten(t *testing.T) {
	f := newFailing(t, manifest.Row{}, time.Microsecond, func(context.Context, string) error { return errors.New("it fails") })
	require.NoError(t, os.RemoveAll(f.letters.Dir()))
	require.NoError(t, os.WriteFile(f.letters.Dir(), nil, 0o600))
	f.invoke(`{}`)
	require.Eventually(t, func() bool { return strings.Contains(f.log.String(), "its dead letter is lost") }, time.Minute, time.Millisecond)
	lost := f.lines()["ERROR"]
	require.Len(t, lost, 1)
	require.Equal(t, "it fails", lost[0]["error"])
	require.Contains(t, lost[0]["lost"], f.letters.Dir())
}
