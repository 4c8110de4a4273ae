package standin

import (
	"context"
	"net/http"
	"net/url"
)

var lambda = Service{
	Name:       "Lambda",
	Operations: "Invoke, PutFunctionRecursionConfig, GetFunctionRecursionConfig",
	Why:        "runs functions in Docker only, and does not know whether one may call itself",
	answers: map[string]answer{
		"PUT /2024-08-31/functions/{name}/recursion-config": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			a.kept[key("recursion", r.PathValue("name"))] = body(r)
			recursion(a, w, r)
		},
		"GET /2024-08-31/functions/{name}/recursion-config": recursion,
	},
}

func recursion(a *AWS, w http.ResponseWriter, r *http.Request) {
	if o, ok := a.kept[key("recursion", r.PathValue("name"))]; ok {
		reply(w, o)
		return
	}
	reply(w, object{"RecursiveLoop": "Terminate"})
}

// Environment is what a function was deployed with.
func (a *AWS) Environment(ctx context.Context, region, function string) (map[string]string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.moto.URL+"/2015-03-31/functions/"+url.PathEscape(function)+"/configuration", nil)
	if err != nil {
		return nil, err
	}
	var configuration struct {
		Environment struct{ Variables map[string]string }
	}
	err = do(r, "lambda", region, &configuration)
	return configuration.Environment.Variables, err
}

// Functions are the names of all that are there.
func (a *AWS) Functions(ctx context.Context, region string) (names []string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.moto.URL+"/2015-03-31/functions/", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Functions []struct{ FunctionName string }
	}
	if err := do(r, "lambda", region, &list); err != nil {
		return nil, err
	}
	for _, f := range list.Functions {
		names = append(names, f.FunctionName)
	}
	return names, nil
}
