package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// eight are the states of a run as the platform's are: tasks with choices between them.
var eight = `"A": ` + task("open", `"Parameters": {"id.$": "$$.Execution.Name", "input.$": "$"}, "ResultPath": "$.opened", "Next": "B"`) +
	`, "B": {"Type": "Choice", "Choices": [{"Variable": "$.skip", "BooleanEquals": true, "Next": "H"}], "Default": "C"},
	"C": ` + task("run", `"Parameters": {"turn.$": "$.opened.id"}, "ResultPath": "$.turn", "TimeoutSeconds": 900, "Retry": [{"ErrorEquals": ["States.ALL"]}], "Next": "D"`) +
	`, "D": ` + task("next", `"ResultPath": "$.next", "Next": "E"`) +
	`, "E": {"Type": "Choice", "Choices": [{"Variable": "$.more", "BooleanEquals": true, "Next": "C"}], "Default": "F"},
	"F": ` + task("close", `"ResultPath": "$.closed", "Next": "G"`) +
	`, "G": {"Type": "Pass", "Next": "H"}, "H": {"Type": "Succeed"}`

const (
	states     = 8
	eightInput = `{"tenantId": "019a1f7e-8d5c-7b3a-9f10-aabbccddeeff", "prompt": "Say what happened since yesterday.", "skip": false, "more": false}`
)

// BenchmarkTransition is what the engine costs from state to state: worked out only, and with the database, one run after the other and 64 at a time.
// The floor is a bare statement that a transition cannot do without, one for each of the run's five transactions.
func BenchmarkTransition(b *testing.B) {
	b.Run("pure", func(b *testing.B) {
		e := &Engine{secret: []byte("key")}
		text := define(eight)
		m, err := asl.Parse(text, asl.Dialect{})
		require.NoError(b, err)
		p := newProgram(text, m)
		input, err := textOf(eightInput)
		require.NoError(b, err)
		c := asl.Context{"Execution": map[string]any{"Name": "run"}}
		s := &scene{program: p, context: func() (asl.Context, error) { return asl.Context{"Execution": c["Execution"]}, nil }, call: e.plan}
		b.ReportAllocs()
		for range b.N {
			m := s.advance(place{phase: entering, input: input}, event{}, began)
			for m.phase != over {
				m = s.advance(m.place, event{result: &input}, began)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/states, "µs/transition")
	})
	for _, beside := range []int{1, 64} {
		b.Run(fmt.Sprintf("kept-%d", beside), func(b *testing.B) {
			w := newWorld(b)
			ended := make(chan struct{}, b.N+1)
			e := w.open(func(c *Config) {
				c.Now = time.Now
				c.Functions = func(_ context.Context, function string, payload []byte) ([]byte, error) {
					if function == "close" {
						ended <- struct{}{}
					}
					return payload, nil
				}
			})
			w.run(e)
			machine := w.put(e, eight)
			w.succeeds(e, w.start(e, machine, eightInput)) // warm
			<-ended
			b.ResetTimer()
			var starters sync.WaitGroup
			turns := make(chan struct{}, beside)
			for range b.N {
				turns <- struct{}{}
				starters.Go(func() {
					_, err := e.Start(b.Context(), machine, ident.New(), json.RawMessage(eightInput))
					require.NoError(b, err)
					<-ended
					<-turns
				})
			}
			starters.Wait()
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/states, "µs/transition")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
	b.Run("floor", func(b *testing.B) {
		w := newWorld(b)
		w.open()
		_, err := w.super.Exec(b.Context(), `set synchronous_commit = off; insert into local_workflow.branches (run, phase, state, input) values (1, 'call', 'A', '{}')`)
		require.NoError(b, err)
		b.ResetTimer()
		for i := range b.N {
			for n := range 5 {
				_, err := w.super.Exec(b.Context(), `with step as (insert into local_workflow.steps values (1, $1, 1, now(), 'entered', 'A', 'Task', $2, '', ''))
					update local_workflow.branches set input = $2, claim = claim + 1 where run = 1`, 5*i+n+1, eightInput)
				require.NoError(b, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/states, "µs/transition")
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	})
}

// BenchmarkStart is how long after a start the first function is called, of 200 starts a second: more than of 10,000 schedules that are due in one minute.
func BenchmarkStart(b *testing.B) {
	w := newWorld(b)
	lags := make(chan time.Duration, b.N+1)
	e := w.open(func(c *Config) {
		c.Now = time.Now
		c.Functions = func(_ context.Context, function string, payload []byte) ([]byte, error) {
			if function == "open" {
				var said struct{ Input struct{ At time.Time } }
				_ = json.Unmarshal(payload, &said)
				lags <- time.Since(said.Input.At)
			}
			return payload, nil
		}
	})
	w.run(e)
	machine := w.put(e, eight)
	start := func(at time.Time) {
		_, err := e.Start(b.Context(), machine, ident.New(), fmt.Appendf(nil, `{"at": %q, "skip": false, "more": false}`, at.Format(time.RFC3339Nano)))
		require.NoError(b, err)
	}
	start(time.Now())
	<-lags
	b.ResetTimer()
	began := time.Now()
	var starters sync.WaitGroup
	for i := range b.N {
		due := began.Add(time.Duration(i) * 5 * time.Millisecond)
		<-time.After(time.Until(due))
		starters.Go(func() { start(due) })
	}
	starters.Wait()
	all := make([]time.Duration, b.N)
	for i := range all {
		all[i] = <-lags
	}
	slices.Sort(all)
	for _, p := range []int{50, 95, 100} {
		b.ReportMetric(float64(all[max(0, b.N*p/100-1)].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}
