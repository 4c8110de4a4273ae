//go:build !notrace

package launch

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-xray-sdk-go/v2/strategy/exception"
	"github.com/aws/aws-xray-sdk-go/v2/xray"

	"github.com/agentplatform/agentplatform/pkg/trace"
)

// traced puts one X-Ray subsegment around each invocation, and has the spans within be X-Ray's. With -tags notrace there is none, and a binary is some 2 MB smaller.
func traced(name string, next lambda.Handler) lambda.Handler {
	trace.SetDefault(segments{})
	return invocation{name, next}
}

type invocation struct {
	name string
	next lambda.Handler
}

func (i invocation) Invoke(ctx context.Context, payload []byte) (answer []byte, err error) {
	ctx, r := segments{}.begin(ctx, i.name, trace.Internal)
	if r != nil {
		defer func() {
			if err != nil {
				r.Fail(trace.Type(err))
			}
			r.End()
		}()
	}
	return i.next.Invoke(ctx, payload)
}

// segments is X-Ray as a sink. What Lambda does not sample is not recorded.
type segments struct{}

// Start implements trace.Sink.
func (s segments) Start(ctx context.Context, name string, kind trace.Kind, at time.Time) (context.Context, trace.Recorder) {
	below, r := s.begin(ctx, name, kind)
	if r == nil {
		return below, nil
	}
	r.Lock()
	r.StartTime = float64(at.UnixNano()) / float64(time.Second)
	r.Unlock()
	return below, r
}

// begin begins a subsegment. Outside of a traced call there is nothing that it could be below.
func (segments) begin(ctx context.Context, name string, kind trace.Kind) (context.Context, *segment) {
	_, header := ctx.Value(xray.LambdaTraceHeaderKey).(string)
	if above := xray.GetSegment(ctx); above == nil && !header || above != nil && above.Dummy {
		return ctx, nil
	}
	below, s := xray.BeginSubsegment(ctx, strings.Map(allowed, name))
	if s == nil || s.Dummy { // not sampled, and so is nothing below
		return below, nil
	}
	if kind == trace.Client {
		s.Lock()
		s.Namespace = "remote"
		s.Unlock()
	}
	return below, &segment{s}
}

// allowed keeps the characters that X-Ray has in names.
func allowed(c rune) rune {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.ContainsRune(" _.:/%&#=+\\-@", c):
		return c
	}
	return '_'
}

// segment is one subsegment as a span.
type segment struct{ *xray.Segment }

// annotated are the attributes that X-Ray can search: it indexes 50 of a trace, and these stand on few spans. The others are metadata.
var annotated = map[string]bool{trace.TenantID: true, trace.TurnID: true, trace.ConversationID: true, trace.AgentID: true, trace.RequestModel: true, trace.TurnStatus: true,
	trace.ToolName: true, trace.ErrorType: true}

// Set implements trace.Recorder.
func (s *segment) Set(key string, value any) {
	s.Lock()
	defer s.Unlock()
	if annotated[key] {
		if s.Annotations == nil {
			s.Annotations = map[string]any{}
		}
		s.Annotations[strings.ReplaceAll(key, ".", "_")] = value
	}
	if s.Metadata == nil {
		s.Metadata = map[string]map[string]any{"default": {}}
	}
	s.Metadata["default"][key] = value
}

// Fail implements trace.Recorder. Close would add the error's text, and a stack.
func (s *segment) Fail(errorType string) {
	s.Set(trace.ErrorType, errorType)
	s.Lock()
	defer s.Unlock()
	s.Fault = true
	s.GetCause().Exceptions = []exception.Exception{{ID: xray.NewSegmentID(), Type: errorType}}
}

// End implements trace.Recorder.
func (s *segment) End() { s.Close(nil) }
