package stepfunctions

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// visit is the time from when a state is entered.
type visit struct {
	seq           int
	state, typ    string
	above         *visit // of the Parallel or Map that it is part of
	failed        bool   // its last attempt
	over          bool   // exited
	error, reason string
}

// history makes steps of a run's events, which come in order. Only events of states that are entered and exited name the state; of the others
// previousEventId leads to one that does, in the branch or iteration that they are of.
type history struct {
	step func(workflow.Step)
	seq  int
	at   map[int64]*visit // where the run was with an event, by its id
}

func newHistory(step func(workflow.Step)) *history {
	return &history{step: step, at: map[int64]*visit{}}
}

func (h *history) add(e types.HistoryEvent) {
	v, kind := h.at[e.PreviousEventId], string(e.Type)
	if typ, ok := strings.CutSuffix(kind, "StateEntered"); ok && e.StateEnteredEventDetails != nil {
		v = h.enter(e, typ, v)
	} else if details := e.StateExitedEventDetails; details != nil {
		if named := v.find(func(v *visit) bool { return v.state == *details.Name }); named != nil {
			v, named.over = named, true
		}
		h.tell(e, v, workflow.Step{Kind: workflow.StateExited, Output: text(details.Output)})
	} else if code, cause, ok := failure(e); ok {
		h.fail(e, v, code, cause)
	} else {
		switch e.Type {
		case types.HistoryEventTypeTaskScheduled, types.HistoryEventTypeLambdaFunctionScheduled, types.HistoryEventTypeActivityScheduled:
			h.attempt(e, v)
		case types.HistoryEventTypeParallelStateStarted, types.HistoryEventTypeMapStateStarted:
			h.attempt(e, v)
			v = &visit{above: v}
		case types.HistoryEventTypeParallelStateFailed, types.HistoryEventTypeMapStateFailed:
			typ, inner := strings.TrimSuffix(kind, "StateFailed"), v
			v = v.find(func(v *visit) bool { return v.typ == typ && !v.failed })
			code, cause := "", ""
			if inner != nil {
				code, cause = inner.error, inner.reason
			}
			h.fail(e, v, code, cause)
		case types.HistoryEventTypeMapIterationStarted: // of the second of a worker's, what precedes it is in the first
			if details := e.MapIterationStartedEventDetails; details != nil {
				v = &visit{above: v.find(func(v *visit) bool { return v.state == aws.ToString(details.Name) })}
			}
		case types.HistoryEventTypeExecutionFailed: // a Fail state, or what the language refuses
			if details := e.ExecutionFailedEventDetails; details != nil && v != nil && !v.failed && !v.over {
				h.fail(e, v, aws.ToString(details.Error), aws.ToString(details.Cause))
			}
		}
	}
	h.at[e.Id] = v
}

func (h *history) enter(e types.HistoryEvent, typ string, before *visit) *visit {
	v := &visit{seq: h.seq + 1, state: aws.ToString(e.StateEnteredEventDetails.Name), typ: typ}
	if before != nil {
		v.above = before.above
	}
	h.tell(e, v, workflow.Step{Kind: workflow.StateEntered, Input: text(e.StateEnteredEventDetails.Input)})
	return v
}

func (h *history) fail(e types.HistoryEvent, v *visit, code, cause string) {
	if v = v.find(func(v *visit) bool { return v.state != "" }); v == nil {
		return
	}
	v.failed, v.error, v.reason = true, code, cause
	h.tell(e, v, workflow.Step{Kind: workflow.StateFailed, Error: code, Cause: cause})
}

func (h *history) attempt(e types.HistoryEvent, v *visit) {
	if v == nil || !v.failed {
		return
	}
	v.failed, v.error, v.reason = false, "", ""
	h.tell(e, v, workflow.Step{Kind: workflow.StateRetried})
}

func (h *history) tell(e types.HistoryEvent, v *visit, s workflow.Step) {
	if v == nil {
		return
	}
	h.seq++
	s.Seq, s.Visit, s.At, s.State, s.Type = h.seq, v.seq, aws.ToTime(e.Timestamp), v.state, v.typ
	h.step(s)
}

// find is the nearest of v and what it is part of that fits, or nil.
func (v *visit) find(fits func(*visit) bool) *visit {
	for ; v != nil && !fits(v); v = v.above {
	}
	return v
}

// failure is what an attempt of a state failed with.
func failure(e types.HistoryEvent) (code, cause string, ok bool) {
	var c, r *string
	switch {
	case e.TaskFailedEventDetails != nil:
		c, r = e.TaskFailedEventDetails.Error, e.TaskFailedEventDetails.Cause
	case e.TaskTimedOutEventDetails != nil:
		c, r = e.TaskTimedOutEventDetails.Error, e.TaskTimedOutEventDetails.Cause
	case e.TaskStartFailedEventDetails != nil:
		c, r = e.TaskStartFailedEventDetails.Error, e.TaskStartFailedEventDetails.Cause
	case e.TaskSubmitFailedEventDetails != nil:
		c, r = e.TaskSubmitFailedEventDetails.Error, e.TaskSubmitFailedEventDetails.Cause
	case e.LambdaFunctionFailedEventDetails != nil:
		c, r = e.LambdaFunctionFailedEventDetails.Error, e.LambdaFunctionFailedEventDetails.Cause
	case e.LambdaFunctionTimedOutEventDetails != nil:
		c, r = e.LambdaFunctionTimedOutEventDetails.Error, e.LambdaFunctionTimedOutEventDetails.Cause
	case e.LambdaFunctionScheduleFailedEventDetails != nil:
		c, r = e.LambdaFunctionScheduleFailedEventDetails.Error, e.LambdaFunctionScheduleFailedEventDetails.Cause
	case e.LambdaFunctionStartFailedEventDetails != nil:
		c, r = e.LambdaFunctionStartFailedEventDetails.Error, e.LambdaFunctionStartFailedEventDetails.Cause
	case e.ActivityFailedEventDetails != nil:
		c, r = e.ActivityFailedEventDetails.Error, e.ActivityFailedEventDetails.Cause
	case e.ActivityTimedOutEventDetails != nil:
		c, r = e.ActivityTimedOutEventDetails.Error, e.ActivityTimedOutEventDetails.Cause
	case e.ActivityScheduleFailedEventDetails != nil:
		c, r = e.ActivityScheduleFailedEventDetails.Error, e.ActivityScheduleFailedEventDetails.Cause
	case e.EvaluationFailedEventDetails != nil:
		c, r = e.EvaluationFailedEventDetails.Error, e.EvaluationFailedEventDetails.Cause
	default:
		return "", "", false
	}
	return aws.ToString(c), aws.ToString(r), true
}
