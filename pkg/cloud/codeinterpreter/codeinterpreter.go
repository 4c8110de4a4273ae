// Package codeinterpreter is Amazon Bedrock AgentCore Code Interpreter behind package sandbox: each script has a session of its own, a virtual machine of
// the service's, which ends with it.
//
// The interpreter that the deployment makes is in network mode SANDBOX, which has no network. The service could run Python and keep files and variables from
// call to call, in a session of up to 8 hours: a script is offered none of it, for it would run in the cloud only. The program that a session runs
// (program.js) takes away what Node.js has beyond ECMAScript, and holds the limits; what reaches around it is in a machine with nothing in it.
//
// Memory: the limit is that of V8's heap. Contents of array buffers lie beside the heap, and count against the session's own memory only.
package codeinterpreter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentcore"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentcore/types"

	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// Config names an interpreter.
type Config struct {
	// Client's role needs bedrock-agentcore:StartCodeInterpreterSession, InvokeCodeInterpreter and StopCodeInterpreterSession on the interpreter. Required.
	Client *bedrockagentcore.Client
	ID     string         // of the interpreter. Required
	Limits sandbox.Limits // of a script; zero: sandbox.Default
}

// Interpreter is a sandbox.Sandbox.
type Interpreter struct{ config Config }

// New makes one.
func New(c Config) *Interpreter {
	if c.Limits == (sandbox.Limits{}) {
		c.Limits = sandbox.Default
	}
	return &Interpreter{c}
}

const (
	startLimit   = 20 * time.Second // for a session to be there
	stopLimit    = 10 * time.Second // for one to end
	sessionLimit = time.Minute      // the service's least: what ends a session that nobody could stop
)

// Run implements sandbox.Sandbox.
func (i *Interpreter) Run(ctx context.Context, s sandbox.Script) (sandbox.Result, error) {
	limits := i.config.Limits
	if err := limits.Check(s); err != nil {
		return sandbox.Result{}, err
	}
	mark := "outcome:" + rand.Text() + ":"
	code, err := write(limits, s, mark)
	if err != nil {
		return sandbox.Result{}, err
	}
	session, err := i.start(ctx)
	if err != nil {
		return sandbox.Result{}, reason(ctx, err)
	}
	defer i.stop(ctx, session)

	began := time.Now()
	inTime, cancel := context.WithTimeout(ctx, limits.Wall)
	defer cancel()
	said, err := i.execute(inTime, session, code)
	took := time.Since(began)
	switch {
	case err != nil && ctx.Err() == nil && inTime.Err() != nil:
		return limits.Result(sandbox.Outcome{Status: sandbox.StatusTimeout}, "", took), nil
	case err != nil:
		return sandbox.Result{}, reason(ctx, err)
	}
	stdout, outcome, ok := read(said.stdout, mark)
	if !ok || said.exit == exitKilled { // a program out of memory has none left to say so
		outcome = said.outcome()
	}
	return limits.Result(outcome, stdout, took), nil
}

func (i *Interpreter) start(ctx context.Context) (*string, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	out, err := i.config.Client.StartCodeInterpreterSession(ctx, &bedrockagentcore.StartCodeInterpreterSessionInput{CodeInterpreterIdentifier: &i.config.ID,
		Name: aws.String("run_code"), SessionTimeoutSeconds: aws.Int32(int32(sessionLimit.Seconds()))})
	if err != nil {
		return nil, err
	}
	return out.SessionId, nil
}

// stop ends a session, also of a caller who has gone.
func (i *Interpreter) stop(ctx context.Context, session *string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	_, err := i.config.Client.StopCodeInterpreterSession(ctx, &bedrockagentcore.StopCodeInterpreterSessionInput{CodeInterpreterIdentifier: &i.config.ID, SessionId: session})
	if err != nil {
		slog.WarnContext(ctx, "a code interpreter's session could not be stopped; it ends by itself", "session", *session, "after", sessionLimit, "error", err)
	}
}

// said is what a session answers.
type said struct {
	stdout, stderr string
	exit           int32
	failed         bool
}

// execute has the session run a program. Of an answer without end it reads what a program can say at most.
func (i *Interpreter) execute(ctx context.Context, session *string, code string) (s said, err error) {
	out, err := i.config.Client.InvokeCodeInterpreter(ctx, &bedrockagentcore.InvokeCodeInterpreterInput{CodeInterpreterIdentifier: &i.config.ID, SessionId: session,
		Name: types.ToolNameExecuteCode, Arguments: &types.ToolArguments{Language: types.ProgrammingLanguageJavascript, Runtime: types.LanguageRuntimeNodejs, Code: &code}})
	if err != nil {
		return s, err
	}
	stream := out.GetStream()
	defer stream.Close()
	var texts strings.Builder
	for event := range stream.Events() {
		result, ok := event.(*types.CodeInterpreterStreamOutputMemberResult)
		if !ok {
			continue
		}
		s.failed = s.failed || aws.ToBool(result.Value.IsError)
		for _, block := range result.Value.Content {
			texts.WriteString(aws.ToString(block.Text))
		}
		if c := result.Value.StructuredContent; c != nil {
			s.stdout, s.stderr = s.stdout+aws.ToString(c.Stdout), s.stderr+aws.ToString(c.Stderr)
			if c.ExitCode != nil {
				s.exit = *c.ExitCode
			}
		}
		if len(s.stdout)+texts.Len() > 32*i.config.Limits.Output {
			break
		}
	}
	if s.stdout == "" { // the same, in the form for models
		s.stdout = texts.String()
	}
	return s, stream.Err()
}

// What processes exit with that timeout(1) and SIGKILL ended.
const (
	exitTimeout = 124
	exitKilled  = 137
)

// outcome is what the answer says of a program that did not come to its mark.
func (s said) outcome() sandbox.Outcome {
	switch {
	case s.exit == exitTimeout:
		return sandbox.Outcome{Status: sandbox.StatusTimeout}
	case s.exit == exitKilled || strings.Contains(s.stderr, "out of memory"):
		return sandbox.Outcome{Status: sandbox.StatusMemory}
	case s.failed || s.exit != 0:
		return sandbox.Outcome{Status: sandbox.StatusError, Error: s.stderr}
	}
	return sandbox.Unsettled // it has come to its end, and the script has not
}

// reason is what a caller can act on.
func reason(ctx context.Context, err error) error {
	var throttled *types.ThrottlingException
	var tooMany *types.ServiceQuotaExceededException
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &throttled), errors.As(err, &tooMany):
		return fmt.Errorf("%w: %w", sandbox.ErrBusy, err)
	}
	return fmt.Errorf("code interpreter: %w", err)
}
