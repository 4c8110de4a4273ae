package provider

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kind is what became of a call that failed.
type Kind string

// The kinds.
const (
	Denied  Kind = "denied"  // the credential was refused
	Missing Kind = "missing" // what the call is about is not there, or not for this credential
	Limited Kind = "limited" // too many calls: nothing was done
	Refused Kind = "refused" // the call is wrong, and always will be
	Away    Kind = "away"    // the provider was not reached, or said that it did nothing
	Unknown Kind = "unknown" // the provider was asked and did not say what it did: it may have been done
)

// Error is why a call failed.
type Error struct {
	Kind   Kind
	Reason string        // for people, without secrets
	After  time.Duration // of Limited and Away: how long the provider wants to be left alone; 0: it does not say
	Status int           // of HTTP; 0: there was no answer
}

func (e *Error) Error() string { return e.Reason }

// Again reports whether nothing was done and the call may be made again.
func (e *Error) Again() bool { return e.Kind == Limited || e.Kind == Away }

func kind(response *http.Response) Kind {
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusForbidden && limited(response.Header):
		return Limited
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Denied
	case status == http.StatusNotFound, status == http.StatusGone:
		return Missing
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
		return Away
	case status < 500: // a redirect that is not followed, too
		return Refused
	}
	return Unknown
}

// limited: GitHub answers 403 to whoever calls too often, as to whoever may not call at all.
func limited(h http.Header) bool {
	return h.Get("Retry-After") != "" || h.Get("X-RateLimit-Remaining") == "0"
}

const longest = 24 * time.Hour

// after is how long the provider wants to be left alone: by Retry-After (RFC 9110 §10.2.3), or by the moment from which it counts anew.
func after(h http.Header, now time.Time) time.Duration {
	var d time.Duration
	wait := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(wait, 64); err == nil && seconds >= 0 {
		d = time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
	} else if at, err := http.ParseTime(wait); err == nil {
		d = at.Sub(now)
	} else if reset, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil && wait == "" {
		d = time.Unix(reset, 0).Sub(now)
	}
	return min(max(d, 0), longest)
}

// message is the provider's own word on a refusal, unless it repeats what is secret.
func message(r *http.Request, body []byte) string {
	var said struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if credential != "" && strings.Contains(said.Message, credential) || len(said.Message) > 300 {
		return ""
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return -1
		}
		return c
	}, said.Message)
}
