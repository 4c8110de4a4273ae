package titan

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/agentplatform/agentplatform/pkg/embed"
	"github.com/agentplatform/agentplatform/pkg/model"
)

// classify turns whatever a call failed with into an error. InvokeModel has an HTTP status for each kind of failure but one.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html#API_runtime_InvokeModel_Errors
func classify(ctx context.Context, err error) *model.Error {
	var api smithy.APIError
	var response *smithyhttp.ResponseError
	if ctx.Err() != nil || !errors.As(err, &response) {
		return embed.Failed(ctx, err)
	}
	if errors.As(err, &api) {
		switch {
		case api.ErrorCode() == "ServiceQuotaExceededException": // a quota does not come back within seconds
			return embed.Failure(model.Throttled, false, err)
		case api.ErrorCode() == "ModelNotReadyException":
			return embed.Failure(model.Unavailable, true, err)
		case api.ErrorCode() == "ValidationException" && tooLong(api.ErrorMessage()):
			return embed.Failure(model.TooLong, false, err)
		}
	}
	switch status := response.HTTPStatusCode(); {
	case status < 300: // the body was not to be had
		return embed.Failure(model.Unavailable, true, err)
	case status == http.StatusTooManyRequests:
		return embed.Failure(model.Throttled, true, err)
	case status == http.StatusRequestTimeout:
		return embed.Failure(model.TimedOut, true, err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return embed.Failure(model.Denied, false, err)
	case status == http.StatusNotFound:
		return embed.Failure(model.Missing, false, err)
	case status == http.StatusFailedDependency: // ModelErrorException
		return embed.Failure(model.Unavailable, true, err)
	case status < 500:
		return embed.Failure(model.Invalid, false, err)
	}
	return embed.Failure(model.Unavailable, true, err)
}

// tooLong recognises the model's wordings for a text with too many tokens or characters.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "too many input tokens") || strings.Contains(message, "expected maxlength")
}

// again tells the log of an attempt that is repeated; last is the failure, without the text.
func (e *Embedder) again(ctx context.Context, last **model.Error) func(error, time.Duration) {
	return func(_ error, pause time.Duration) {
		e.config.Log.WarnContext(ctx, "a text could not be embedded, asking again", "model", Model, "reason", (*last).Reason, "pause", pause, "cause", (*last).Unwrap())
	}
}

// bounded lets the SDK, which reads an answer to its end, read no more than largest.
func bounded(o *bedrockruntime.Options) { o.HTTPClient = limited{o.HTTPClient} }

type limited struct{ bedrockruntime.HTTPClient }

func (l limited) Do(r *http.Request) (*http.Response, error) {
	response, err := l.HTTPClient.Do(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, largest)
	}
	return response, err
}
