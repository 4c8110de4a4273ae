package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// API is AWS Lambda's operation Invoke, POST /2015-03-31/functions/{name}/invocations, for whoever speaks to Lambda by its SDK: name is a name, a partial
// ARN or an ARN, with or without a qualifier. It trusts who calls it: put a check in front of it.
type API struct {
	Prefix string // of the names
	Invoke func(ctx context.Context, name string, payload []byte) ([]byte, error)
	Event  func(ctx context.Context, name string, payload []byte) error // takes the payload for later. Default: Invoke beside the answer, its failure to the log
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := a.name(r)
	if !ok {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+r.URL.Path)
		return
	}
	kind, most := r.Header.Get("X-Amz-Invocation-Type"), int64(MaxPayload)
	if kind == "Event" {
		most = MaxEvent
	}
	payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", fmt.Sprintf("Request must be smaller than %d bytes for the InvokeFunction operation", most))
		return
	} else if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not read the request body")
		return
	}
	if len(payload) > 0 && !json.Valid(payload) {
		refuse(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
		return
	}
	w.Header().Set("X-Amzn-Requestid", ident.New())
	switch kind {
	case "", "RequestResponse":
		a.call(w, r, name, payload)
	case "Event":
		a.later(w, r, name, payload)
	case "DryRun":
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, http.StatusBadRequest, "InvalidParameterValueException", "InvocationType must be one of Event, RequestResponse, DryRun")
	}
}

// name is the function that a request is for.
func (a *API) name(r *http.Request) (string, bool) {
	rest, ours := strings.CutPrefix(r.URL.EscapedPath(), "/2015-03-31/functions/")
	text, isInvoke := strings.CutSuffix(rest, "/invocations")
	text, err := url.PathUnescape(text)
	if !ours || !isInvoke || err != nil || r.Method != http.MethodPost {
		return "", false
	}
	if _, name, isARN := strings.Cut(text, "function:"); isARN {
		text = name
	}
	text, _, _ = strings.Cut(text, ":") // a qualifier
	return strings.CutPrefix(text, a.Prefix)
}

func (a *API) call(w http.ResponseWriter, r *http.Request, name string, payload []byte) {
	answer, err := a.Invoke(r.Context(), name, payload)
	failed := new(FunctionError)
	switch {
	case errors.As(err, &failed):
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		answer = failed.Payload
	case err != nil:
		a.refused(w, name, err)
		return
	}
	w.Header().Set("X-Amz-Executed-Version", "$LATEST")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

func (a *API) later(w http.ResponseWriter, r *http.Request, name string, payload []byte) {
	if a.Event != nil {
		if err := a.Event(r.Context(), name, payload); err != nil {
			a.refused(w, name, err)
			return
		}
	} else {
		go func() {
			if _, err := a.Invoke(context.WithoutCancel(r.Context()), name, payload); err != nil {
				slog.Error("a function failed", "function", name, "error", err)
			}
		}()
	}
	w.WriteHeader(http.StatusAccepted)
}

func (a *API) refused(w http.ResponseWriter, name string, err error) {
	switch {
	case errors.Is(err, ErrUnknown):
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+name)
	case errors.Is(err, ErrTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", err.Error())
	default:
		slog.Error("a function could not be invoked", "function", name, "error", err)
		refuse(w, http.StatusInternalServerError, "ServiceException", "The function could not be invoked")
	}
}

// refuse is Lambda's own error, REST-JSON.
func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-ErrorType", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"Type": "User", "Message": message})
}
