package standin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

type nameKey struct{}

// nameOf is a call's name, `service operation`; where the address is the operation, `service METHOD /address`.
func nameOf(r *http.Request) string {
	name, _ := r.Context().Value(nameKey{}).(string)
	return name
}

// signedFor is the service in the scope of a signature.
var signedFor = regexp.MustCompile(`Credential=[^/]+/\d+/([^/]*)/([^/]+)/aws4_request`)

// named puts its name into a call. What tells the operation in a form is read to find it.
func named(r *http.Request) (*http.Request, error) {
	service := "unsigned"
	if found := signedFor.FindStringSubmatch(r.Header.Get("Authorization")); found != nil {
		service = found[2]
	}
	operation := r.Method + " " + r.URL.Path
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		operation = target[strings.LastIndexByte(target, '.')+1:]
	} else if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		if form, err := url.ParseQuery(string(text)); err == nil && form.Has("Action") {
			operation = form.Get("Action")
		}
	}
	return r.WithContext(context.WithValue(r.Context(), nameKey{}, service+" "+operation)), nil
}

type saidKey struct{}

// keepSaid puts a call's JSON beside it, for when its body is gone.
func keepSaid(r *http.Request) {
	said := object{}
	if r.Body != nil {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 8<<20))
		r.Body = io.NopCloser(bytes.NewReader(text))
		_ = json.Unmarshal(text, &said) // what is no object is an empty one
	}
	*r = *r.WithContext(context.WithValue(r.Context(), saidKey{}, &said))
}

// region is that of a call's signature.
func region(r *http.Request) string {
	if found := signedFor.FindStringSubmatch(r.Header.Get("Authorization")); found != nil {
		return found[1]
	}
	return "us-east-1"
}
