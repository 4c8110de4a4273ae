package bedrock

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// verdict is what an error code of the provider means for us.
type verdict struct {
	reason model.Reason
	retry  bool
}

// codes covers Bedrock's documented errors and those of AWS's front door, by their names on the wire.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html#API_runtime_ConverseStream_Errors
var codes = map[string]verdict{
	"ThrottlingException":                 {model.Throttled, true},
	"TooManyRequestsException":            {model.Throttled, true},
	"ServiceQuotaExceededException":       {model.Throttled, false}, // a quota does not come back within seconds
	"ServiceUnavailableException":         {model.Unavailable, true},
	"InternalServerException":             {model.Unavailable, true},
	"ModelNotReadyException":              {model.Unavailable, true},
	"ModelErrorException":                 {model.Unavailable, true},
	"ModelTimeoutException":               {model.TimedOut, true},
	"RequestTimeoutException":             {model.TimedOut, true},
	"ModelStreamErrorException":           {model.Broken, true},
	"ValidationException":                 {model.Invalid, false},
	"ConflictException":                   {model.Invalid, false},
	"ResourceNotFoundException":           {model.Missing, false},
	"AccessDeniedException":               {model.Denied, false},
	"UnrecognizedClientException":         {model.Denied, false},
	"InvalidSignatureException":           {model.Denied, false},
	"IncompleteSignatureException":        {model.Denied, false},
	"MissingAuthenticationTokenException": {model.Denied, false},
	"ExpiredTokenException":               {model.Denied, false},
}

// classify turns whatever a model call failed with into an *Error. streaming: the answer had begun.
func classify(ctx context.Context, err error, streaming bool) *model.Error {
	var known *model.Error
	if errors.As(err, &known) || ctx.Err() != nil {
		return model.Failed(ctx, err, streaming)
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return classifyAPI(api, err, streaming)
	}
	var encoding *smithy.SerializationError
	var params *smithy.InvalidParamsError
	if errors.As(err, &encoding) || errors.As(err, &params) {
		return model.Failure(model.Invalid, false, err)
	}
	return model.Failed(ctx, err, streaming)
}

func classifyAPI(api smithy.APIError, err error, streaming bool) *model.Error {
	v, ok := codes[api.ErrorCode()]
	if !ok {
		v = byStatus(err, streaming)
	}
	if v.reason == model.Invalid && tooLong(api.ErrorMessage()) {
		v.reason = model.TooLong
	}
	return model.Failure(v.reason, v.retry, err)
}

// byStatus judges a code that is not in the table, e.g. that of a proxy on the way.
func byStatus(err error, streaming bool) verdict {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) {
		if streaming {
			return verdict{model.Broken, true}
		}
		return verdict{model.Unavailable, true}
	}
	switch status := response.HTTPStatusCode(); {
	case status == http.StatusTooManyRequests:
		return verdict{model.Throttled, true}
	case status == http.StatusRequestTimeout:
		return verdict{model.TimedOut, true}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return verdict{model.Denied, false}
	case status == http.StatusNotFound:
		return verdict{model.Missing, false}
	case status >= 400 && status < 500:
		return verdict{model.Invalid, false}
	}
	return verdict{model.Unavailable, true}
}

// tooLong recognises Claude's wordings for a conversation beyond its context.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "too long") || strings.Contains(message, "context window") ||
		strings.Contains(message, "context limit")
}
