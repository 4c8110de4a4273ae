package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// Routes matches HTTP requests to the manifest's rows (`http GET /api/webhooks/{webhookId}`), as an API Gateway HTTP API does.
type Routes struct {
	routes []Route // the more definite before the less: a fixed segment wins over a parameter
}

// Route is one row's method and path.
type Route struct {
	Row     manifest.Row
	Key     string // "GET /api/webhooks/{webhookId}", API Gateway's routeKey
	method  string
	pattern []string
}

// Match is a route and the values of its parameters, percent-decoded.
type Match struct {
	Route
	Params map[string]string
}

// NewRoutes reads the rows' http triggers. It refuses a trigger that it cannot read, and two rows for one route.
func NewRoutes(m manifest.Manifest) (*Routes, error) {
	r := &Routes{}
	seen := map[string]string{}
	for _, row := range m.Rows {
		for _, key := range row.Triggers("http") {
			method, path, ok := strings.Cut(key, " ")
			if !ok || method == "" || !strings.HasPrefix(path, "/") {
				return nil, fmt.Errorf("gateway: route %q of %s is not METHOD /path", key, row.Name)
			}
			route := Route{Row: row, Key: key, method: method, pattern: strings.Split(path[1:], "/")}
			shape := method
			for _, s := range route.pattern {
				if parameter(s) != "" {
					s = "{}"
				}
				shape += "/" + s
			}
			if other, ok := seen[shape]; ok {
				return nil, fmt.Errorf("gateway: %s and %s have the same route %s", other, row.Name, key)
			}
			seen[shape] = row.Name
			r.routes = append(r.routes, route)
		}
	}
	slices.SortStableFunc(r.routes, func(a, b Route) int { return slices.Compare(a.definite(), b.definite()) })
	return r, nil
}

// definite orders routes: 0 for a fixed segment, 1 for a parameter.
func (r Route) definite() (out []int) {
	for _, s := range r.pattern {
		out = append(out, min(len(parameter(s)), 1))
	}
	return out
}

func parameter(segment string) string {
	if strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}") {
		return segment[1 : len(segment)-1]
	}
	return ""
}

// Match finds the route of a request. path is escaped, as it came (url.URL.EscapedPath). No route for the path is a NotFound; none
// for the method a ValidationError with status 405, for which Allowed names the methods of the Allow header.
func (r *Routes) Match(method, path string) (Match, error) {
	for _, route := range r.routes {
		if params, ok := route.match(path); ok && route.method == method {
			return Match{route, params}, nil
		}
	}
	if allowed := r.Allowed(path); allowed != nil {
		return Match{}, fault.Invalid("the method must be one of %s", strings.Join(allowed, ", ")).WithStatus(http.StatusMethodNotAllowed)
	}
	return Match{}, fault.New(fault.NotFound, "there is nothing at this path")
}

// Allowed lists the methods that a path takes; nil when there is no such path.
func (r *Routes) Allowed(path string) (methods []string) {
	for _, route := range r.routes {
		if _, ok := route.match(path); ok && !slices.Contains(methods, route.method) {
			methods = append(methods, route.method)
		}
	}
	slices.Sort(methods)
	return methods
}

func (r Route) match(path string) (map[string]string, bool) {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(segments) != len(r.pattern) {
		return nil, false
	}
	params := map[string]string{}
	for i, want := range r.pattern {
		got, err := url.PathUnescape(segments[i])
		if err != nil {
			return nil, false
		}
		if name := parameter(want); name != "" && got != "" {
			params[name] = got
		} else if got != want {
			return nil, false
		}
	}
	return params, true
}
