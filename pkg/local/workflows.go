package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"golang.org/x/sync/errgroup"

	port "github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/clock"
	engine "github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/trace"
	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/schema"
)

const (
	account       = "000000000000"
	machines      = "arn:aws:states:" + region + ":" + account + ":stateMachine:" + functionPrefix // and a machine's name
	routines      = "routine-"                                                                     // how the names of tenants' machines begin
	scheduleGroup = "agentplatform-local-tenants"                                                  // in the functions' EventBridge Scheduler
	workflowRole  = "arn:aws:iam::" + account + ":role/agentplatform-local-routines"               // says which account
	schedulesRole = "arn:aws:iam::" + account + ":role/agentplatform-local-tenants-schedules"
)

// openEngines opens the clock and the workflow engine, and gives the latter the platform's own state machines. runEngines has them work.
func (p *Platform) openEngines(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		p.clock, err = clock.Open(ctx, clock.Config{URL: p.database.owner})
		return err
	})
	g.Go(func() error { return p.openEngine(ctx) })
	return g.Wait()
}

func (p *Platform) openEngine(ctx context.Context) (err error) {
	p.engine, err = engine.Open(ctx, engine.Config{URL: p.database.owner, Functions: p.task, Region: region, Account: account, Prefix: functionPrefix, Ended: p.ended})
	if err != nil {
		return err
	}
	files, err := fs.Glob(schema.Workflows, "workflow/*.asl.json")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := schema.Workflows.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".asl.json"), "_", "-")
		if err := p.engine.Deploy(ctx, name, definition(string(text))); err != nil {
			return fmt.Errorf("the state machine %s: %w", name, err)
		}
	}
	return nil
}

var placeholder = regexp.MustCompile(`\$\{([a-z-]+)\}`)

// definition is a state machine's with the ARNs of its functions, as a deployment makes it.
func definition(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string { return functionARN(placeholder.FindStringSubmatch(found)[1]) })
}

// runEngines has clock and engine work until the platform stops. What they cut short then goes on at the next start.
func (p *Platform) runEngines() {
	ctx, cancel := context.WithCancel(context.Background())
	p.stopEngines = cancel
	for _, run := range []func(context.Context) error{func(ctx context.Context) error { return p.clock.Run(ctx, p.fire) }, p.engine.Run} {
		p.engines.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				p.failed <- err
			}
		})
	}
}

// closeEngines closes what openEngines has opened; whoever uses it has ended.
func (p *Platform) closeEngines() {
	if p.clock != nil {
		p.clock.Close()
	}
	if p.engine != nil {
		p.engine.Close()
	}
}

// fire starts the execution of an occurrence, once: its name is the occurrence's. One that another definition of the schedule has started stays.
func (p *Platform) fire(ctx context.Context, s port.Schedule, occurrence time.Time) error {
	_, err := p.engine.Start(ctx, schedule.AutoThread, schedule.RunName(s.Name, occurrence), s.InputOf(occurrence))
	if errors.Is(err, workflow.ErrRunExists) {
		return nil
	}
	return err
}

// runEvent is what EventBridge tells of an execution, without its input and output, as the rule of a deployment has it.
type runEvent struct {
	Source     string    `json:"source"`
	DetailType string    `json:"detail-type"`
	Detail     runDetail `json:"detail"`
}

type runDetail struct {
	ExecutionARN    string          `json:"executionArn"`
	StateMachineARN string          `json:"stateMachineArn"`
	Name            string          `json:"name"`
	Status          workflow.Status `json:"status"`
}

// ended tells the rows of `event states` that a run of a tenant's machine has ended. They take it up at once; what a stop of the platform cuts short, their
// sweep finds.
func (p *Platform) ended(ctx context.Context, run workflow.Run, machine string) error {
	if !strings.HasPrefix(machine, routines) {
		return nil
	}
	event := runEvent{Source: "aws.states", DetailType: "Step Functions Execution Status Change", Detail: runDetail{ExecutionARN: run.ID, StateMachineARN: machines + machine,
		Name: run.ID[strings.LastIndexByte(run.ID, ':')+1:], Status: run.Status}}
	for _, row := range p.config.Rows.Rows {
		if len(row.Triggers("event")) > 0 {
			if err := p.queue.Invoke(ctx, row.Name, event); err != nil {
				return err
			}
		}
	}
	return nil
}

// task calls a function for a state machine, for as long as its row allows. What fails there is said as Lambda's runtime says it; that there is no such
// function, or that the platform stops, is no answer of the function.
func (p *Platform) task(ctx context.Context, function string, payload []byte) ([]byte, error) {
	row, h := p.queue.function(function)
	if h == nil {
		return nil, fmt.Errorf("no function %q", function)
	}
	within, cancel := context.WithTimeout(trace.In(ctx, trace.Scope{RequestID: ident.New()}), row.Timeout.Duration())
	defer cancel()
	answer, err := safely(within, h, payload)
	named := messages.InvokeResponse_Error{}
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil: // what a function says then says nothing of its work
		return nil, ctx.Err()
	case within.Err() != nil:
		return nil, messages.InvokeResponse_Error{Type: "Sandbox.Timedout", Message: fmt.Sprintf("Task timed out after %d.00 seconds", row.Timeout)}
	}
	if bad := json.Unmarshal(response(err), &named); bad != nil {
		return nil, errors.Join(err, bad)
	}
	return nil, named
}

// safely is a call that a panic fails.
func safely(ctx context.Context, h lambda.Handler, payload []byte) (answer []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked{v}
		}
	}()
	return h.Invoke(ctx, payload)
}
