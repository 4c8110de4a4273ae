package pool

import (
	"net/http"
	"strings"
)

// cors is the route's method and the pattern of its preflight request, for routes that browsers call from other origins.
func (r route) cors() (method, preflight string, ok bool) {
	method, path, _ := strings.Cut(r.pattern, " ")
	return method, "OPTIONS " + path, r.browser
}

// open lets pages of every origin read the answer, as the real service does: nothing here is authorized by a cookie.
func open(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Expose-Headers", "x-amzn-RequestId,x-amzn-ErrorType,x-amzn-ErrorMessage,Date")
		serve(w, r)
	}
}

func preflight(methods []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Allow-Methods", strings.Join(methods, ","))
		if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" && len(asked) < 1024 {
			h.Set("Access-Control-Allow-Headers", asked)
		}
		h.Set("Access-Control-Max-Age", "172800")
		h.Add("Vary", "Access-Control-Request-Headers")
		w.WriteHeader(http.StatusNoContent)
	}
}
