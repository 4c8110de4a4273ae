package model

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// verdict is what an error code of the provider means for us.
type verdict struct {
	reason Reason
	retry  bool
}

// codes covers Bedrock's documented errors and those of AWS's front door, by their names on the wire.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html#API_runtime_ConverseStream_Errors
var codes = map[string]verdict{
	"ThrottlingException":                 {Throttled, true},
	"TooManyRequestsException":            {Throttled, true},
	"ServiceQuotaExceededException":       {Throttled, false}, // a quota does not come back within seconds
	"ServiceUnavailableException":         {Unavailable, true},
	"InternalServerException":             {Unavailable, true},
	"ModelNotReadyException":              {Unavailable, true},
	"ModelErrorException":                 {Unavailable, true},
	"ModelTimeoutException":               {TimedOut, true},
	"RequestTimeoutException":             {TimedOut, true},
	"ModelStreamErrorException":           {Broken, true},
	"ValidationException":                 {Invalid, false},
	"ConflictException":                   {Invalid, false},
	"ResourceNotFoundException":           {Missing, false},
	"AccessDeniedException":               {Denied, false},
	"UnrecognizedClientException":         {Denied, false},
	"InvalidSignatureException":           {Denied, false},
	"IncompleteSignatureException":        {Denied, false},
	"MissingAuthenticationTokenException": {Denied, false},
	"ExpiredTokenException":               {Denied, false},
}

// classify turns whatever a model call failed with into an *Error. streaming: the answer had begun.
func classify(ctx context.Context, err error, streaming bool) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	// The caller's end shows up as a dozen different transport errors: ask the context itself.
	if cause := ctx.Err(); cause != nil {
		return ended(ctx, err)
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return classifyAPI(api, err, streaming)
	}
	var encoding *smithy.SerializationError
	var params *smithy.InvalidParamsError
	if errors.As(err, &encoding) || errors.As(err, &params) {
		return failure(Invalid, false, err)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return failure(TimedOut, true, err)
	}
	if streaming {
		return failure(Broken, true, err)
	}
	return failure(Unavailable, true, err)
}

func classifyAPI(api smithy.APIError, err error, streaming bool) *Error {
	v, ok := codes[api.ErrorCode()]
	if !ok {
		v = byStatus(err, streaming)
	}
	if v.reason == Invalid && tooLong(api.ErrorMessage()) {
		v.reason = TooLong
	}
	return failure(v.reason, v.retry, err)
}

// byStatus judges a code that is not in the table, e.g. that of a proxy on the way.
func byStatus(err error, streaming bool) verdict {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) {
		if streaming {
			return verdict{Broken, true}
		}
		return verdict{Unavailable, true}
	}
	switch status := response.HTTPStatusCode(); {
	case status == http.StatusTooManyRequests:
		return verdict{Throttled, true}
	case status == http.StatusRequestTimeout:
		return verdict{TimedOut, true}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return verdict{Denied, false}
	case status == http.StatusNotFound:
		return verdict{Missing, false}
	case status >= 400 && status < 500:
		return verdict{Invalid, false}
	}
	return verdict{Unavailable, true}
}

// tooLong recognises Claude's wordings for a conversation beyond its context.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "too long") || strings.Contains(message, "context window") ||
		strings.Contains(message, "context limit")
}

// ended is the failure of a call whose context is over; errors.Is finds the context's error in it.
func ended(ctx context.Context, err error) *Error {
	cause := errors.Join(ctx.Err(), err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failure(TimedOut, false, cause)
	}
	return failure(Canceled, false, cause)
}
