package embed

import (
	"context"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// messages is what a tenant reads, as in package model: fixed sentences.
var messages = map[model.Reason]string{
	model.Throttled:   "The embedding model is receiving too many requests. Please try again in a moment.",
	model.Unavailable: "The embedding model is not available at the moment. Please try again later.",
	model.TimedOut:    "The embedding model did not answer in time.",
	model.Malformed:   "The embedding model gave an answer that could not be read.",
	model.Invalid:     "The embedding model refused the request as invalid.",
	model.TooLong:     "The text is too long for the embedding model.",
	model.Missing:     "The embedding model does not exist or is not offered in this region.",
	model.Denied:      "The platform has no access to the embedding model.",
	model.Canceled:    "The request was cancelled.",
}

// Failure is an attempt that failed; retry says whether another may succeed.
func Failure(reason model.Reason, retry bool, cause error) *model.Error {
	return told(model.Failure(reason, retry, cause))
}

// Failed turns whatever an attempt failed with into a *model.Error, as far as one can see without knowing the provider.
func Failed(ctx context.Context, err error) *model.Error { return told(model.Failed(ctx, err, false)) }

// told is e in the words for embeddings; a message that somebody made for this failure stays.
func told(e *model.Error) *model.Error {
	if e.Message != model.Failure(e.Reason, false, nil).Message {
		return e
	}
	own := *e
	if message, known := messages[e.Reason]; known {
		own.Message = message
	}
	return &own
}
