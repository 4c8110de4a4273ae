// Package openapitest holds REST functions to the contract (schema/openapi.yaml), in tests: an answer that the document does not describe, to the
// member and the header, fails the test, and so does a request that a function took although the document does not allow it.
package openapitest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/pb33f/libopenapi-validator/schema_validation"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"

	"github.com/agentplatform/agentplatform/schema"
)

// Contract is the document, ready to be checked against. It may be used by several tests at once.
type Contract struct {
	validator  validator.Validator
	schemas    schema_validation.SchemaValidator // of single values
	operations []operation
}

// operation is a method on a path of the document.
type operation struct {
	id       string
	method   string // "POST"
	path     string // "/api/webhooks/{webhookId}"
	item     *v3.PathItem
	statuses map[int]described
}

// described is an answer as the document has it.
type described struct {
	headers map[string]*v3.Header // by canonical name
	body    bool
}

var parsed = sync.OnceValues(func() (*Contract, error) { return parse(schema.OpenAPI) })

// New is the contract; it is parsed once.
func New(t testing.TB) *Contract {
	t.Helper()
	c, err := parsed()
	if err != nil {
		t.Fatalf("schema/openapi.yaml: %v", err)
	}
	return c
}

func parse(text []byte) (*Contract, error) {
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		return nil, err
	}
	model, err := document.BuildV3Model()
	if err != nil {
		return nil, err
	}
	options := []config.Option{config.WithFormatAssertions(), config.WithAuthenticationFunc(authenticated), config.WithRejectUndeclaredRequestBody(),
		config.WithRejectUnsupportedBodyContent()}
	c := &Contract{schemas: schema_validation.NewSchemaValidator(options...)}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method, o := range item.GetOperations().FromOldest() {
			statuses, err := describe(o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.OperationId, err)
			}
			c.operations = append(c.operations, operation{o.OperationId, strings.ToUpper(method), path, item, statuses})
		}
	}
	slices.SortStableFunc(c.operations, func(a, b operation) int { return strings.Count(a.path, "{") - strings.Count(b.path, "{") }) // a path in so many words comes first
	c.validator = validator.NewValidatorFromV3Model(&model.Model, options...)
	c.validator.SetDocument(document)
	return c, nil
}

// describe reads an operation's answers. It takes their headers out of the model: the validator would read a header's value as JSON, so that an
// entity tag loses its quotes, and would not read an optional header's at all. They are checked in headers.go.
func describe(o *v3.Operation) (map[int]described, error) {
	if o.Responses.Default != nil {
		return nil, errors.New("a default response describes nothing: list the statuses")
	}
	statuses := map[int]described{}
	for code, r := range o.Responses.Codes.FromOldest() {
		status, err := strconv.Atoi(code)
		if err != nil {
			return nil, fmt.Errorf("the status %q describes nothing: list the statuses", code)
		}
		d := described{map[string]*v3.Header{}, r.Content != nil && r.Content.Len() > 0}
		if r.Headers != nil {
			for name, h := range r.Headers.FromOldest() {
				d.headers[http.CanonicalHeaderKey(name)] = h
			}
		}
		r.Headers = nil
		statuses[status] = d
	}
	return statuses, nil
}

// find is the operation of a request. path is escaped (url.URL.EscapedPath).
func (c *Contract) find(method, path string) (operation, error) {
	var methods []string
	for _, o := range c.operations {
		if !fits(o.path, path) {
			continue
		}
		if o.method == method {
			return o, nil
		}
		methods = append(methods, o.method)
	}
	if methods == nil {
		return operation{}, fmt.Errorf("schema/openapi.yaml has no path %s", path)
	}
	return operation{}, fmt.Errorf("schema/openapi.yaml has no method %s on %s, only %s", method, path, strings.Join(methods, ", "))
}

func fits(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, segment := range want {
		if parameter := strings.HasPrefix(segment, "{"); parameter && got[i] == "" || !parameter && got[i] != segment {
			return false
		}
	}
	return true
}
