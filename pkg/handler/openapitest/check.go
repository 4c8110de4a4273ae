package openapitest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi-validator/config"
	liberrors "github.com/pb33f/libopenapi-validator/errors"
)

// Check fails the test when an exchange is not what the contract says: the operation is not in it, the answer has a status, type, header or body
// that the operation does not have, or a request was taken (2xx) that the operation does not allow. Any goroutine may call it.
//
// requestBody and body are whole; nobody reads request.Body.
func (c *Contract) Check(t testing.TB, request *http.Request, requestBody []byte, status int, header http.Header, body []byte) {
	t.Helper()
	if found := c.breaches(request, requestBody, status, header, body); len(found) > 0 {
		t.Errorf("not what schema/openapi.yaml says: %s %s, answered with %d\n  %s\nrequest: %s\nanswer: %s", request.Method, request.URL.EscapedPath(), status,
			strings.Join(found, "\n  "), excerpt(requestBody), excerpt(body))
	}
}

// breaches are what an exchange does that the contract does not say, a line each.
func (c *Contract) breaches(request *http.Request, requestBody []byte, status int, header http.Header, body []byte) (found []string) {
	o, err := c.find(request.Method, request.URL.EscapedPath())
	if err != nil {
		return []string{err.Error()}
	}
	want, ok := o.statuses[status]
	if !ok {
		return []string{fmt.Sprintf("%s has no status %d, only %v", o.id, status, slices.Sorted(maps.Keys(o.statuses)))}
	}
	canonical := http.Header{}
	for name, values := range header {
		canonical[http.CanonicalHeaderKey(name)] = values
	}
	found = c.headerBreaches(want, canonical)
	switch {
	case want.body && len(body) == 0:
		found = append(found, "the answer has no body")
	case !want.body && (len(body) > 0 || canonical.Get("Content-Type") != ""):
		found = append(found, "the answer has a body or a Content-Type")
	case want.body:
		answer := &http.Response{StatusCode: status, Header: canonical, Body: io.NopCloser(bytes.NewReader(body))}
		_, errs := c.validator.GetResponseBodyValidator().ValidateResponseBodyWithPathItem(copied(request, nil), answer, o.item, o.path)
		found = append(found, lines("answer", errs)...)
	}
	if status < 300 {
		_, errs := c.validator.ValidateHttpRequestSyncWithPathItem(copied(request, requestBody), o.item, o.path)
		found = append(found, lines("request, which was taken", errs)...)
	}
	return found
}

// copied is a request that the validator may change and read.
func copied(request *http.Request, body []byte) *http.Request {
	c := request.Clone(context.WithoutCancel(request.Context()))
	c.Body, c.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return c
}

// authenticated asks for credentials of the form that the scheme says. The gateway takes a user's token without `Bearer ` too. What signs a delivery is in a
// header that each provider names by itself.
func authenticated(_ context.Context, in *config.AuthenticationInput) error {
	switch scheme := in.SecurityScheme; {
	case scheme.Type == "apiKey" && scheme.In == "query" && !in.Request.URL.Query().Has(scheme.Name):
		return fmt.Errorf("there is no %s in the query", scheme.Name)
	case scheme.Type == "apiKey":
		return nil
	}
	scheme, token, ok := strings.Cut(in.Request.Header.Get("Authorization"), " ")
	switch {
	case scheme == "":
		return errors.New("there is no Authorization header")
	case in.SecuritySchemeName == "user" && !ok:
		return nil
	case !strings.EqualFold(scheme, in.SecurityScheme.Scheme) || strings.TrimSpace(token) == "":
		return fmt.Errorf("the Authorization header must be %s and a token", in.SecurityScheme.Scheme)
	}
	return nil
}

// lines are the validator's errors, one a line: where, what. It finds them in any order.
func lines(where string, errs []*liberrors.ValidationError) (found []string) {
	for _, e := range errs {
		at := where
		if e.ParameterName != "" {
			at += ", parameter " + e.ParameterName
		}
		if len(e.SchemaValidationErrors) == 0 {
			found = append(found, fmt.Sprintf("%s: %s (%s)", at, e.Message, e.Reason))
		}
		found = append(found, ofSchema(at, e.SchemaValidationErrors)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// ofSchema are the lines of a value that does not fit its schema. When a part of a composed schema fails, all its members count as unevaluated and
// are complained of too: noise, but when nothing else is wrong.
func ofSchema(where string, failures []*liberrors.SchemaValidationFailure) (found []string) {
	const unevaluated = "false schema"
	var unknown []string
	for _, f := range failures {
		path := cmp.Or(f.FieldPath, "$")
		if f.Reason == unevaluated {
			unknown = append(unknown, fmt.Sprintf("%s, %s: is not described", where, path))
		} else {
			found = append(found, fmt.Sprintf("%s, %s: %s", where, path, f.Reason))
		}
	}
	if len(found) == 0 {
		return unknown
	}
	return found
}

// excerpt keeps a large body from filling the test's output.
func excerpt(body []byte) string {
	const length = 2000
	if len(body) > length {
		return fmt.Sprintf("%s … (%d bytes)", strings.ToValidUTF8(string(body[:length]), ""), len(body))
	}
	return string(body)
}
