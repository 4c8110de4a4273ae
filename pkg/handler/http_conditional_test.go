package handler_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
)

func TestPageReadsTheQuery(t *testing.T) {
	ask := func(query string) (asked page.Request, answer events.APIGatewayV2HTTPResponse) {
		t.Helper()
		answer = ask(t, func(e *events.APIGatewayV2HTTPRequest) { e.RawQueryString = query }, func(_ context.Context, r *handler.Request) (_ handler.Reply, err error) {
			asked, err = r.Page()
			return handler.Reply{}, err
		})
		return asked, answer
	}
	for query, want := range map[string]page.Request{
		"":                         {},
		"x=1":                      {},
		"limit=5":                  {Limit: new(5)},
		"limit=-7":                 {Limit: new(-7)}, // out of bounds, which the list itself says
		"next_token=a-_B":          {NextToken: new("a-_B")},
		"next_token=":              {NextToken: new("")}, // no token of any list
		"limit=1&next_token=a%2Bb": {Limit: new(1), NextToken: new("a+b")},
		"LIMIT=9&Next_Token=x":     {},
	} {
		asked, answer := ask(query)
		require.Equal(t, 204, answer.StatusCode, query)
		require.Equal(t, want, asked, query)
	}
	for _, query := range []string{"limit=", "limit", "limit=x", "limit=1.5", "limit=1e1", "limit=%201", "limit=99999999999999999999", "limit=0x10", "limit=x&limit=1"} {
		_, answer := ask(query)
		require.Equal(t, 400, answer.StatusCode, query)
		require.Contains(t, answer.Body, `"detail":"limit must be a number"`, query)
	}
}

func TestListIsOfSnakeCase(t *testing.T) {
	for want, of := range map[string]page.Page[int]{
		`{"items":[1,2],"next_token":"t"}`: {Items: []int{1, 2}, NextToken: new("t")},
		`{"items":[],"next_token":null}`:   {Items: []int{}},
	} {
		answer := ask(t, nil, func(context.Context, *handler.Request) (handler.Reply, error) {
			return handler.Reply{Body: handler.List[int](of)}, nil
		})
		require.Equal(t, want, answer.Body)
	}
}

func TestCheckMatch(t *testing.T) {
	for given, matches := range map[string]bool{
		"":                            true, // nobody asked
		`"3"`:                         true,
		`  "3"	`:                      true,
		`*`:                           true,
		`"1","3"`:                     true,
		`"1" , "2" ,"3"`:              true,
		`"1", *`:                      true,
		`W/"3", "3"`:                  true,
		`"4"`:                         false,
		`3`:                           false,
		`"3`:                          false,
		`"33"`:                        false,
		`"1", "2"`:                    false,
		`W/"3"`:                       false, // If-Match compares strongly
		`w/"3"`:                       false,
		`"1""3"`:                      false,
		`""`:                          false,
		` `:                           false, // there, and names no version
		`,`:                           false,
		strings.Repeat(`"1",`, 10000): false,
	} {
		answer := ask(t, func(e *events.APIGatewayV2HTTPRequest) {
			if e.Headers["if-match"] = given; given == "" {
				delete(e.Headers, "if-match")
			}
		}, func(_ context.Context, r *handler.Request) (handler.Reply, error) {
			return handler.Reply{}, r.CheckMatch(`"3"`)
		})
		if matches {
			require.Equal(t, 204, answer.StatusCode, "%.50s", given)
			continue
		}
		require.Equal(t, 412, answer.StatusCode, "%.50s", given)
		var problem struct{ Title, Detail, ErrorType string }
		require.NoError(t, json.Unmarshal([]byte(answer.Body), &problem))
		require.Equal(t, "Precondition Failed", problem.Title)
		require.Equal(t, string(fault.ValidationError), problem.ErrorType)
		require.Equal(t, `If-Match does not name the current version, "3"`, problem.Detail)
	}
}

func TestJSONTakesOtherTypesWhereTheyAreNamed(t *testing.T) {
	const merge = "application/merge-patch+json"
	for _, c := range []struct {
		typ    string
		also   []string
		status int
		detail string
	}{
		{merge, []string{merge}, 200, ""},
		{"Application/Merge-Patch+JSON; charset=utf-8", []string{merge}, 200, ""},
		{"application/json", []string{merge}, 200, ""},
		{merge, nil, 415, "must be application/json"},
		{"text/plain", []string{merge}, 415, "must be application/json or application/merge-patch+json"},
		{merge + "; charset=latin1", []string{merge}, 415, "must be"},
		{"application/json-patch+json", []string{merge}, 415, "must be"},
		{merge + ", application/json", []string{merge}, 415, "must be"},
	} {
		answer := ask(t, func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = c.typ }, func(_ context.Context, r *handler.Request) (handler.Reply, error) {
			body, err := r.JSON(c.also...)
			return handler.Reply{Body: len(body)}, err
		})
		require.Equal(t, c.status, answer.StatusCode, c.typ)
		require.Contains(t, answer.Body, c.detail, c.typ)
	}
}

func TestAnErrorKeepsTheReplysHeaders(t *testing.T) {
	answer := ask(t, nil, func(context.Context, *handler.Request) (handler.Reply, error) {
		return handler.Reply{Headers: map[string]string{"Retry-After": "42"}}, fault.New(fault.RateLimitExceeded, "too many")
	})
	require.Equal(t, 429, answer.StatusCode)
	require.Equal(t, map[string]string{"retry-after": "42", "content-type": "application/problem+json", "cache-control": "no-store", "x-request-id": "JKJaXmPLvHcESHA="}, answer.Headers)
	require.JSONEq(t, `{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"too many","instance":"/api/webhooks/a%2Fb","errorType":"RateLimitExceeded"}`, answer.Body)
}

func TestBearer(t *testing.T) {
	for given, token := range map[string]string{
		"":                     "",
		"Bearer abc":           "abc",
		"bEARER  abc ":         "abc",
		"Bearer":               "",
		"Bearer ":              "",
		"Basic abc":            "",
		"abc":                  "",
		"Bearerabc":            "",
		" Bearer abc":          "",
		"Bearer a b":           "a b", // no token of ours
		"Bearer abc,Bearer de": "abc,Bearer de",
	} {
		ask(t, func(e *events.APIGatewayV2HTTPRequest) { e.Headers["authorization"] = given }, func(_ context.Context, r *handler.Request) (handler.Reply, error) {
			require.Equal(t, token, r.Bearer(), given)
			return handler.Reply{}, nil
		})
	}
}
