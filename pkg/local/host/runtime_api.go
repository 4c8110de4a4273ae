package host

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// runtimeAPI is what instances speak: GET next, POST response, POST error, POST init/error, behind the token of each.
func (h *Host) runtimeAPI() http.Handler {
	mux := http.NewServeMux()
	route := func(pattern, path string, serve func(*instance, http.ResponseWriter, *http.Request)) {
		mux.HandleFunc(pattern+" /{token}/2018-06-01/runtime/"+path, func(w http.ResponseWriter, r *http.Request) {
			h.mu.Lock()
			i := h.instances[r.PathValue("token")]
			h.mu.Unlock()
			if i == nil {
				say(w, http.StatusForbidden, "InvalidInstance", "no such instance")
				return
			}
			serve(i, w, r)
		})
	}
	route(http.MethodGet, "invocation/next", (*instance).next)
	route(http.MethodPost, "invocation/{id}/response", (*instance).response)
	route(http.MethodPost, "invocation/{id}/error", (*instance).failure)
	route(http.MethodPost, "init/error", (*instance).initFailure)
	return mux
}

// next hands out an invoke, as soon as there is one.
func (i *instance) next(w http.ResponseWriter, r *http.Request) {
	v, ok := i.host.ask(i)
	if !ok {
		say(w, http.StatusForbidden, "InvalidStateTransition", "the last invoke is not answered, or the next one is asked for already")
		return
	}
	if v == nil {
		select {
		case v = <-i.work:
		case <-r.Context().Done(): // most likely the process has ended
			i.host.unask(i)
			return
		}
	}
	h := w.Header()
	h.Set("Lambda-Runtime-Aws-Request-Id", v.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(v.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", i.host.arn(i.of.Name))
	h.Set("Lambda-Runtime-Trace-Id", fmt.Sprintf("Root=1-%08x-%.24s;Parent=%.16s;Sampled=0", time.Now().Unix(), i.token, i.token))
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(v.payload)))
	_, _ = w.Write(v.payload) // who cannot take it ends
}

// arn is the function's name in AWS.
func (h *Host) arn(name string) string {
	return "arn:aws:lambda:" + h.config.Region + ":" + h.config.Account + ":function:" + h.config.Prefix + name
}

// response is the answer of an invoke. A runtime that breaks off in the middle of it says so in the trailers.
func (i *instance) response(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAnswer))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		i.finish(id, nil, sandbox("Function.ResponseSizeTooLarge", "", "Response payload size exceeded maximum allowed payload size (%d bytes).", maxAnswer))
		say(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", fmt.Sprintf("the response has more than %d bytes", maxAnswer))
		return
	} else if err != nil {
		say(w, http.StatusBadRequest, "InvalidBody", "the response cannot be read")
		return
	}
	if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		said, _ := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
		i.finished(w, id, nil, reported(kind, said))
		return
	}
	i.finished(w, id, body, nil)
}

// failure is an invoke that failed in the function.
func (i *instance) failure(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAnswer))
	if err != nil {
		say(w, http.StatusBadRequest, "InvalidBody", "the error cannot be read")
		return
	}
	i.finished(w, r.PathValue("id"), nil, reported(r.Header.Get("Lambda-Runtime-Function-Error-Type"), body))
}

func (i *instance) finished(w http.ResponseWriter, id string, answer []byte, failed *FunctionError) {
	var err error
	if failed != nil {
		err = failed
	}
	if !i.finish(id, answer, err) {
		say(w, http.StatusBadRequest, "InvalidRequestID", "the instance has no such invoke")
		return
	}
	accepted(w)
}

// initFailure is a start that failed; the process ends next, and the invoke that it was started for hears why.
func (i *instance) initFailure(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAnswer))
	if err != nil {
		say(w, http.StatusBadRequest, "InvalidBody", "the error cannot be read")
		return
	}
	i.host.mu.Lock()
	polled := i.polled
	if !polled {
		i.why = reported(r.Header.Get("Lambda-Runtime-Function-Error-Type"), body)
	}
	i.host.mu.Unlock()
	if polled {
		say(w, http.StatusForbidden, "InvalidStateTransition", "the start is over")
		return
	}
	accepted(w)
}

func accepted(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

// say is the API's own refusal.
func say(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errorType":%q,"errorMessage":%q}`, kind, message)
}
