// Package clock is the port to what starts things on time: Amazon EventBridge Scheduler in the cloud (pkg/cloud/scheduler), a clock in the
// platform's own database on one machine (pkg/local/clock).
//
// What holds:
//   - A schedule has a name that nobody else's has; Put makes it or replaces it as a whole, and a Put of what is there changes nothing that runs.
//   - Package due refuses the same schedules for every clock, before anything is asked.
//   - An occurrence is an instant at which a schedule is due. Each is delivered at least once: whoever is called holds (name, occurrence) against
//     what has run. Input tells it the occurrence, where it says ScheduledTime.
//   - A schedule whose last occurrence is over stays until it is deleted, so that "has run" and "was lost" are told apart.
package clock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/page"
)

// Clock holds schedules. It is safe for concurrent use; of concurrent Puts of one name one is the last, as a whole.
type Clock interface {
	// Put makes the schedule, or replaces the one of its name. What package due refuses is a fault.Error that who wrote it may read.
	Put(ctx context.Context, s Schedule) error
	// Delete removes a schedule; one that is not there is no error. An occurrence that is being delivered still is.
	Delete(ctx context.Context, name string) error
	// Get is a schedule as package due puts it: in UTC, to the second, its input compact. Or ErrNotFound.
	Get(ctx context.Context, name string) (Schedule, error)
	// List is a page of all schedules, in no order that callers may rely on: the first for nil, then the one of the page's NextToken. What is put or
	// deleted meanwhile may be there or not; all else is there once.
	List(ctx context.Context, token *string) (page.Page[Entry], error)
}

// Schedule is what runs when, and what is told to whom it starts.
type Schedule struct {
	Name       string          // 1 to 64 of A-Z a-z 0-9 - _ .
	Expression string          // of package expression
	TimeZone   string          // IANA name; empty: UTC
	Start, End time.Time       // bounds of its occurrences, to the second; zero: none. An at() has none
	Enabled    bool            // whether it runs
	Input      json.RawMessage // what the target is given, 64 KiB at most; empty: {}
}

// Entry is a schedule of a list.
type Entry struct {
	Name    string
	Enabled bool
}

// ScheduledTime is a string that stands in Input for the occurrence, as 2030-01-02T03:04:05Z. It must be a JSON string of its own; json.Marshal's
// way to write it is understood too. It is EventBridge Scheduler's own keyword; its others are refused, for only it would know them.
const ScheduledTime = Keyword + "scheduled-time>"

// Keyword is how EventBridge Scheduler's keywords begin.
const Keyword = "<aws.scheduler."

// InputOf is the input for an occurrence.
func (s Schedule) InputOf(occurrence time.Time) json.RawMessage {
	return bytes.ReplaceAll(s.Input, []byte(ScheduledTime), []byte(occurrence.UTC().Format("2006-01-02T15:04:05Z")))
}

// What callers branch on.
var (
	ErrNotFound = errors.New("clock: there is no such schedule")
	// ErrNeverRuns refuses an enabled schedule without an occurrence from now on: an at() that is over or that the zone's clocks skip, an end that has
	// passed, the 30th of February.
	ErrNeverRuns error = fault.Invalid("the schedule would never run: none of its times is still to come")
	ErrTooMany         = errors.New("clock: there are as many schedules as the account may have")
	ErrThrottled       = errors.New("clock: too many requests at a time")
)

var name = regexp.MustCompile(`^[0-9a-zA-Z-_.]{1,64}$`)

// ValidName reports whether a schedule can have the name.
func ValidName(text string) bool { return name.MatchString(text) }
