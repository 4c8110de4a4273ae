package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

const maxBody = 64 << 10 // bytes of a request

// wireError is an error of the Cognito API: HTTP 400 and {"__type", "message"}.
type wireError struct{ kind, message string }

func (e wireError) Error() string { return e.message }

func failed(kind, format string, args ...any) error {
	return wireError{kind, fmt.Sprintf(format, args...)}
}

func notAuthorized(message string) error { return wireError{"NotAuthorizedException", message} }

func missing(name string) error {
	return failed("InvalidParameterException", "Missing required parameter %s", name)
}

func expired(err error) bool { return errors.Is(err, jwt.ErrTokenExpired) }

// operation is one operation of the wire API: from the request's JSON to the value that answers it.
type operation func(p *Pool, ctx context.Context, body []byte) (any, error)

var operations = map[string]operation{
	"InitiateAuth":              (*Pool).initiateAuth,
	"RespondToAuthChallenge":    (*Pool).respondToAuthChallenge,
	"GetTokensFromRefreshToken": (*Pool).getTokensFromRefreshToken,
	"GetUser":                   (*Pool).getUser,
	"GlobalSignOut":             (*Pool).globalSignOut,
	"RevokeToken":               (*Pool).revokeToken,
}

const targetPrefix = "AWSCognitoIdentityProviderService."

// wire serves POST /: the operation is named by X-Amz-Target, the body is JSON, protocol awsJson1_1.
func (p *Pool) wire(w http.ResponseWriter, r *http.Request) { p.answer(w, r, operations) }

func (p *Pool) answer(w http.ResponseWriter, r *http.Request, known map[string]operation) {
	h := w.Header()
	h.Set("x-amzn-RequestId", ident.New())
	h.Set("Cache-Control", "no-store")
	answer, err := p.call(w, r, known)
	if err == nil {
		writeAs(w, "application/x-amz-json-1.1", http.StatusOK, answer)
		return
	}
	status := http.StatusBadRequest
	var e wireError
	if !errors.As(err, &e) {
		p.config.Log.ErrorContext(r.Context(), "identity pool", "error", err)
		e, status = wireError{"InternalErrorException", "Something went wrong"}, http.StatusInternalServerError
	}
	h.Set("x-amzn-ErrorType", e.kind)
	writeAs(w, "application/x-amz-json-1.1", status, struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}{e.kind, e.message})
}

func (p *Pool) call(w http.ResponseWriter, r *http.Request, known map[string]operation) (any, error) {
	name, ours := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
	run := known[name]
	if !ours || run == nil {
		return nil, failed("UnknownOperationException", "The local identity pool has no operation %.80q", r.Header.Get("X-Amz-Target"))
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !slices.Contains([]string{"application/x-amz-json-1.1", "application/x-amz-json-1.0", "application/json"}, kind) {
		return nil, failed("SerializationException", "Content-Type must be application/x-amz-json-1.1")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, failed("SerializationException", "The request could not be read, or is longer than %d bytes", maxBody)
	}
	if !utf8.Valid(body) {
		return nil, failed("SerializationException", "The request is not valid UTF-8")
	}
	return run(p, withOrigin(r), body)
}

// decode reads an operation's input; members that it does not know are passed over, as the real service does.
func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return failed("SerializationException", "The request is not the JSON object that the operation takes")
	}
	return nil
}

func (p *Pool) checkClient(id string) error {
	if id == "" {
		return missing("ClientId")
	}
	if id != p.clientID {
		return failed("ResourceNotFoundException", "User pool client %.128s does not exist.", id)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) { writeAs(w, "application/json", status, v) }

func writeAs(w http.ResponseWriter, kind string, status int, v any) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone if this fails
}
