package standin

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
)

// Service is what is answered in moto's place for one service.
type Service struct {
	Name       string
	Operations string // as AWS calls them
	Why        string // moto cannot

	// answers by what the call looks like: `METHOD /path` as http.ServeMux knows it, or `service Operation`, as calls are named. The lock is held.
	answers map[string]answer
	amends  []amendment
}

type answer func(a *AWS, w http.ResponseWriter, r *http.Request)

// amendment changes what goes to moto and what comes back, of the calls whose names fit.
type amendment struct {
	of       *regexp.Regexp
	question func(r *http.Request)    // nil: it goes as it is
	answer   func(body []byte) []byte // of a call that succeeds
	// told is the same for what moto forgets: said is the call's own JSON, and what it gave back. The lock is held.
	told func(a *AWS, r *http.Request, said, given object)
}

// Services are all of them.
var Services = []Service{apigateway, appsync, budgets, cloudformation, cloudfront, kms, knowledge, lambda, rds, ses, states}

// store is what was made: objects as JSON has them, by a key that begins with their kind.
type store map[string]object

type object = map[string]any

// key joins the parts of a store's key.
func key(parts ...string) string { return strings.Join(parts, " ") }

// body is a request's JSON.
func body(r *http.Request) object {
	o := object{}
	_ = json.NewDecoder(r.Body).Decode(&o) // what is no object is an empty one
	return o
}

func reply(w http.ResponseWriter, o any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}

// missing is REST-JSON's answer for what is not there.
func missing(w http.ResponseWriter, kind, what string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-ErrorType", kind)
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(object{"message": what + " not found."})
}

// refuse is the caller's mistake, in JSON.
func refuse(w http.ResponseWriter, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-ErrorType", kind)
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(object{"__type": kind, "message": message})
}
