package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// ended is a run that is over, and its history; or why neither could be had.
type ended struct {
	workflow.Run
	steps []workflow.Step
	err   error
}

// states are those that the run entered, in order.
func (e ended) states() (names []string) {
	for _, s := range e.steps {
		if s.Kind == workflow.StateEntered {
			names = append(names, s.State)
		}
	}
	return names
}

// execute runs a machine to its end.
func execute(ctx context.Context, engine workflow.Engine, machine, name string, input json.RawMessage) (e ended) {
	ctx, cancel := context.WithTimeout(ctx, minute)
	defer cancel()
	id, err := engine.Start(ctx, machine, name, input)
	if e.err = err; err != nil {
		return e
	}
	for wait := 5 * tick; ; wait = min(2*wait, 20*tick) {
		if e.Run, e.err = engine.Describe(ctx, id); e.err != nil || e.Status != workflow.Running {
			break
		}
		pause(ctx, wait)
	}
	if e.err == nil {
		e.steps, e.err = engine.History(ctx, id, 0, 1000)
	}
	return e
}

// together is how many runs go on at a time: most wait for something.
const together = 20

// runAll runs the corpus, or what of it moto can be asked, and keeps how each run ended.
func runAll(ctx context.Context, engine workflow.Engine, examples []*example, moto bool, all map[string]ended) {
	var mu sync.Mutex
	group := new(errgroup.Group)
	group.SetLimit(together)
	for _, x := range examples {
		put := sync.OnceValue(func() error { return engine.Put(ctx, x.machine, x.definition) })
		for i, r := range x.Runs {
			if moto && r.Differs != "" {
				continue
			}
			group.Go(func() error {
				e := ended{err: put()}
				if e.err == nil {
					e = execute(ctx, engine, x.machine, fmt.Sprintf("run-%d", i), r.Input)
				}
				mu.Lock()
				defer mu.Unlock()
				all[keyOf(x, i)] = e
				return nil
			})
		}
	}
	_ = group.Wait() // what fails is one run's
}

func keyOf(x *example, run int) string { return fmt.Sprintf("%s/%d", x.path, run) }

// ordered reports whether only one thing happens at a time.
func (x *example) ordered() bool {
	return !strings.Contains(x.definition, `"Parallel"`) && !strings.Contains(x.definition, `"Map"`)
}

// history is what a run went through, in text: a line a step, or, if things happened side by side, the lines of each visit of a state, sorted by visits.
// Then it is without what Step Functions does not tell: that a Fail state of a branch failed, and what a Parallel or Map failed of.
func (e ended) history(t testing.TB, ordered bool) string {
	t.Helper()
	var visits []int
	lines := map[int][]string{}
	for _, s := range e.steps {
		if failed := s.Kind == workflow.StateFailed && !ordered; failed && s.Type == "Fail" {
			continue
		} else if failed && (s.Type == "Parallel" || s.Type == "Map") {
			s.Error = ""
		}
		line := fmt.Sprintf("%s %s %s", s.Type, s.State, s.Kind)
		for _, data := range []json.RawMessage{s.Input, s.Output} {
			if data != nil {
				line += " " + normal(t, data)
			}
		}
		if s.Error != "" {
			line += " " + s.Error
			if !strings.HasPrefix(s.Error, "States.") {
				line += ": " + normal(t, text(t, s.Cause))
			}
		}
		of := s.Visit
		if ordered {
			of = s.Seq
		}
		if lines[of] == nil {
			visits = append(visits, of)
		}
		lines[of] = append(lines[of], line)
	}
	blocks := make([]string, len(visits))
	for i, v := range visits {
		blocks[i] = strings.Join(lines[v], "\n")
	}
	if !ordered {
		slices.Sort(blocks)
	}
	return strings.Join(blocks, "\n")
}

var (
	isTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`).MatchString
	isUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString
)

// normal is data in text that is the same for what is the same, but for what no two runs share: a timestamp of this year or later is <time>, a UUID <uuid>.
func normal(t testing.TB, data json.RawMessage) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value), "%q", data)
	return strings.TrimSpace(string(text(t, plain(t, value))))
}

func plain(t testing.TB, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(t, v[k])
		}
	case []any:
		for i := range v {
			v[i] = plain(t, v[i])
		}
	case json.Number:
		n, ok := new(big.Rat).SetString(string(v))
		require.True(t, ok, v)
		if !n.IsInt() {
			return json.RawMessage(strings.TrimRight(n.FloatString(30), "0"))
		}
		return json.RawMessage(n.RatString())
	case string:
		switch {
		case isTime(v) && v > "2026":
			return "<time>"
		case isUUID(v):
			return "<uuid>"
		case strings.HasPrefix(v, "{") && json.Valid([]byte(v)):
			return "JSON: " + normal(t, json.RawMessage(v))
		}
	}
	return value
}
