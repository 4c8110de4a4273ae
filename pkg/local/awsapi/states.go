package awsapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// states is Step Functions (AWSStepFunctions, JSON 1.0) with the state machines and executions whose ARNs begin as those of this deployment.
//
// Histories have an event a step, each behind the one that entered its state; what AWS tells besides, of schedules, starts and ends, is not there.
type states struct {
	engine   workflow.Engine
	machines string // how their ARNs begin: arn:aws:states:us-east-1:000000000000:stateMachine:agentplatform-local-
}

// asked are the members of all operations.
type asked struct {
	Name, Definition, Type string
	StateMachineArn        string
	ExecutionArn           string
	Input, Output          string
	Error, Cause           string
	TaskToken              string
	MaxResults             int
	NextToken              string
}

const maxEvents = 1000 // of a page: AWS's

func (s *states) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in asked
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		refuse(w, http.StatusBadRequest, "SerializationException", "the request is not the JSON object that the operation takes")
		return
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	serve := map[string]func(r *http.Request, in asked) (any, error){
		"ValidateStateMachineDefinition": s.check,
		"CreateStateMachine":             s.create,
		"DescribeStateMachine":           s.tell,
		"DeleteStateMachine":             s.delete,
		"StartExecution":                 s.start,
		"StopExecution":                  s.stop,
		"DescribeExecution":              s.describe,
		"GetExecutionHistory":            s.history,
		"SendTaskSuccess":                s.succeed,
		"SendTaskFailure":                s.fail,
		"SendTaskHeartbeat":              s.heartbeat,
	}[operation]
	if serve == nil {
		refuse(w, http.StatusBadRequest, "UnknownOperationException", "the platform's Step Functions has no "+operation)
		return
	}
	out, err := serve(r, in)
	if err != nil {
		s.failed(w, r, operation, err)
		return
	}
	write(w, http.StatusOK, out)
}

type object = map[string]any

func (s *states) check(_ *http.Request, in asked) (any, error) {
	diagnostics := []object{}
	_, err := asl.Parse(in.Definition, asl.Dialect{}) // what it may call, the engine says when it is made
	if refused := (*workflow.DefinitionError)(nil); errors.As(err, &refused) {
		for _, p := range refused.Problems {
			diagnostics = append(diagnostics, object{"severity": "ERROR", "code": p.Code, "message": p.Message, "location": p.Location})
		}
		return object{"result": "FAIL", "truncated": false, "diagnostics": diagnostics}, nil
	}
	return object{"result": "OK", "truncated": false, "diagnostics": diagnostics}, err
}

// create also takes a machine that is there with this definition, as AWS does.
func (s *states) create(r *http.Request, in asked) (any, error) {
	prefix := s.machines[strings.LastIndexByte(s.machines, ':')+1:]
	name, ours := strings.CutPrefix(in.Name, prefix)
	if !ours || in.Type != "STANDARD" {
		return nil, &refusal{"AccessDeniedException", "the platform makes standard state machines whose names begin with " + prefix}
	}
	if err := s.engine.Put(r.Context(), name, in.Definition); err != nil {
		return nil, err
	}
	return object{"stateMachineArn": s.machines + name, "creationDate": epoch(time.Now())}, nil
}

// tell says of a machine that it is there, and not what it is: whoever asks has heard that another definition has its name, and compares.
func (s *states) tell(_ *http.Request, in asked) (any, error) {
	name, err := s.machine(in.StateMachineArn)
	return object{"stateMachineArn": s.machines + name, "name": name, "definition": "", "status": "ACTIVE", "type": "STANDARD", "roleArn": "", "creationDate": epoch(time.Now())}, err
}

func (s *states) delete(r *http.Request, in asked) (any, error) {
	name, err := s.machine(in.StateMachineArn)
	if err != nil {
		return nil, err
	}
	return object{}, s.engine.Delete(r.Context(), name)
}

func (s *states) start(r *http.Request, in asked) (any, error) {
	name, err := s.machine(in.StateMachineArn)
	if err != nil {
		return nil, err
	}
	run, err := s.engine.Start(r.Context(), name, in.Name, json.RawMessage(in.Input))
	return object{"executionArn": run, "startDate": epoch(time.Now())}, err
}

func (s *states) stop(r *http.Request, in asked) (any, error) {
	return object{"stopDate": epoch(time.Now())}, s.engine.Stop(r.Context(), in.ExecutionArn, in.Error, in.Cause)
}

func (s *states) describe(r *http.Request, in asked) (any, error) {
	run, err := s.engine.Describe(r.Context(), in.ExecutionArn)
	if err != nil {
		return nil, err
	}
	machine, name := run.ID, ""
	if at := strings.LastIndexByte(run.ID, ':'); at >= 0 {
		machine, name = strings.Replace(run.ID[:at], ":execution:", ":stateMachine:", 1), run.ID[at+1:]
	}
	out := object{"executionArn": run.ID, "stateMachineArn": machine, "name": name, "status": run.Status, "startDate": epoch(run.Started), "input": string(run.Input),
		"inputDetails": object{"included": true}}
	if !run.Ended.IsZero() {
		out["stopDate"] = epoch(run.Ended)
	}
	if run.Output != nil {
		out["output"], out["outputDetails"] = string(run.Output), object{"included": true}
	}
	if run.Error != "" || run.Cause != "" {
		out["error"], out["cause"] = run.Error, run.Cause
	}
	return out, nil
}

// history is a page of events: the first tells of the start, the others of a step each. A page's token is how many have been told.
func (s *states) history(r *http.Request, in asked) (any, error) {
	after, limit := 0, in.MaxResults
	if limit < 1 || limit > maxEvents {
		limit = 100
	}
	if in.NextToken != "" {
		var err error
		if after, err = strconv.Atoi(in.NextToken); err != nil || after < 0 {
			return nil, &refusal{"InvalidToken", "the page's token is none"}
		}
	}
	steps, err := s.engine.History(r.Context(), in.ExecutionArn, after, limit)
	if err != nil {
		return nil, err
	}
	events := []object{}
	if after == 0 {
		events = append(events, object{"id": 1, "previousEventId": 0, "type": "ExecutionStarted", "timestamp": epoch(time.Now())})
	}
	for _, step := range steps {
		events = append(events, event(step))
	}
	out := object{"events": events}
	if len(steps) == limit {
		out["nextToken"] = strconv.Itoa(after + limit)
	}
	return out, nil
}

// event is a step as AWS tells of it: behind the event that entered the state, so that a reader finds which state it is of.
func event(s workflow.Step) object {
	e := object{"id": s.Seq + 1, "previousEventId": s.Visit + 1, "timestamp": epoch(s.At)}
	switch s.Kind {
	case workflow.StateEntered:
		e["previousEventId"], e["type"] = 0, s.Type+"StateEntered"
		e["stateEnteredEventDetails"] = object{"name": s.State, "input": string(s.Input), "inputDetails": object{"truncated": false}}
	case workflow.StateExited:
		e["type"] = s.Type + "StateExited"
		e["stateExitedEventDetails"] = object{"name": s.State, "output": string(s.Output), "outputDetails": object{"truncated": false}}
	case workflow.StateFailed: // the one event that tells of any state's failure
		e["type"], e["evaluationFailedEventDetails"] = "EvaluationFailed", object{"state": s.State, "error": s.Error, "cause": s.Cause}
		if s.Type == "Task" {
			delete(e, "evaluationFailedEventDetails")
			e["type"], e["taskFailedEventDetails"] = "TaskFailed", object{"resourceType": "lambda", "resource": "invoke", "error": s.Error, "cause": s.Cause}
		}
	case workflow.StateRetried:
		e["type"] = map[string]string{"Parallel": "ParallelStateStarted", "Map": "MapStateStarted"}[s.Type]
		if e["type"] == "" {
			e["type"], e["taskScheduledEventDetails"] = "TaskScheduled", object{"resourceType": "lambda", "resource": "invoke", "region": "", "parameters": ""}
		}
	}
	return e
}

func (s *states) succeed(r *http.Request, in asked) (any, error) {
	return object{}, s.engine.Succeed(r.Context(), in.TaskToken, json.RawMessage(in.Output))
}

func (s *states) fail(r *http.Request, in asked) (any, error) {
	return object{}, s.engine.Fail(r.Context(), in.TaskToken, in.Error, in.Cause)
}

func (s *states) heartbeat(r *http.Request, in asked) (any, error) {
	return object{}, s.engine.Heartbeat(r.Context(), in.TaskToken)
}

// machine is the name of the machine with that ARN.
func (s *states) machine(arn string) (string, error) {
	name, ours := strings.CutPrefix(arn, s.machines)
	if !ours {
		return "", workflow.ErrNoMachine
	}
	return name, nil
}

// refusal is an error of the service's own words.
type refusal struct{ kind, message string }

func (e *refusal) Error() string { return e.kind + ": " + e.message }

// words are the service's for the port's.
var words = []struct {
	err  error
	kind string
}{
	{workflow.ErrName, "InvalidName"}, {workflow.ErrDefinition, "InvalidDefinition"}, {workflow.ErrMachineExists, "StateMachineAlreadyExists"},
	{workflow.ErrNoMachine, "StateMachineDoesNotExist"}, {workflow.ErrRunExists, "ExecutionAlreadyExists"}, {workflow.ErrNoRun, "ExecutionDoesNotExist"},
	{workflow.ErrNoTask, "TaskDoesNotExist"}, {workflow.ErrTaskOver, "TaskTimedOut"}, {workflow.ErrThrottled, "ThrottlingException"},
	{workflow.ErrData, "ValidationException"}, {workflow.ErrTooLarge, "ValidationException"},
}

func (s *states) failed(w http.ResponseWriter, r *http.Request, operation string, err error) {
	if own := (*refusal)(nil); errors.As(err, &own) {
		refuse(w, http.StatusBadRequest, own.kind, own.message)
		return
	}
	for _, word := range words {
		if errors.Is(err, word.err) {
			refuse(w, http.StatusBadRequest, word.kind, err.Error())
			return
		}
	}
	if r.Context().Err() == nil {
		slog.ErrorContext(r.Context(), "the workflow engine failed a function", "operation", operation, "error", err)
	}
	refuse(w, http.StatusInternalServerError, "InternalServerError", "the engine cannot be used")
}

// epoch is a time as AWS's JSON has it: seconds, with a fraction.
func epoch(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
