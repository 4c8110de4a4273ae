package awsapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

// schedules is EventBridge Scheduler (REST, JSON) with the schedules of one group, which all start one state machine.
type schedules struct {
	clock  clock.Clock
	group  string
	target string // ARN of the state machine
}

// before serves what is of schedules. A mux would not do: it redirects a path like /schedules/.., and ".." is a name.
func (s *schedules) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, one := strings.CutPrefix(r.URL.Path, "/schedules/")
		r.SetPathValue("name", name)
		switch {
		case one && r.Method == http.MethodPost:
			s.put(w, r, false)
		case one && r.Method == http.MethodPut:
			s.put(w, r, true)
		case one && r.Method == http.MethodGet:
			s.get(w, r)
		case one && r.Method == http.MethodDelete:
			s.delete(w, r)
		case r.URL.Path == "/schedules" && r.Method == http.MethodGet:
			s.list(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// wanted is a schedule as it travels; times are seconds since 1970.
type wanted struct {
	GroupName                  string
	Description                string
	ScheduleExpression         string
	ScheduleExpressionTimezone string
	StartDate, EndDate         *float64
	State                      string
	Target                     struct{ Arn, RoleArn, Input string }
	FlexibleTimeWindow         struct{ Mode string }
}

// What the description of a schedule says of bounds that are past: AWS takes none, so the true ones are there (pkg/cloud/scheduler).
const (
	started = "Starts "
	ended   = "Ends "
)

// read is the schedule of a request; nil: it was refused.
func (s *schedules) read(w http.ResponseWriter, r *http.Request) *clock.Schedule {
	var in wanted
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		refuse(w, http.StatusBadRequest, "SerializationException", "the request is not the JSON object that the operation takes")
		return nil
	}
	switch {
	case !s.here(w, in.GroupName):
		return nil
	case in.Target.Arn != s.target || in.FlexibleTimeWindow.Mode != "OFF":
		refuse(w, http.StatusBadRequest, "ValidationException", "the platform's schedules start "+s.target+", at their time")
		return nil
	}
	made := clock.Schedule{Name: r.PathValue("name"), Expression: in.ScheduleExpression, TimeZone: in.ScheduleExpressionTimezone, Start: moment(in.StartDate), End: moment(in.EndDate),
		Enabled: in.State == "ENABLED", Input: json.RawMessage(in.Target.Input)}
	for past := range strings.SplitSeq(in.Description, ", ") {
		for word, bound := range map[string]*time.Time{started: &made.Start, ended: &made.End} {
			text, is := strings.CutPrefix(past, word)
			if !is {
				continue
			}
			var err error
			if *bound, err = time.Parse(time.RFC3339, text); err != nil {
				refuse(w, http.StatusBadRequest, "ValidationException", "the description is not one that the platform writes")
				return nil
			}
		}
	}
	return &made
}

// here refuses the schedules of other groups.
func (s *schedules) here(w http.ResponseWriter, group string) bool {
	if group != s.group {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Schedule group "+group+" does not exist.")
	}
	return group == s.group
}

// put makes a schedule that is not there, or replaces one that is. Of two that do so at once, one is the last: the clock's promise.
func (s *schedules) put(w http.ResponseWriter, r *http.Request, there bool) {
	made := s.read(w, r)
	if made == nil {
		return
	}
	_, err := s.clock.Get(r.Context(), made.Name)
	switch {
	case err == nil && !there:
		refuse(w, http.StatusConflict, "ConflictException", "Schedule "+made.Name+" already exists.")
		return
	case errors.Is(err, clock.ErrNotFound) && !there, err == nil:
		err = s.clock.Put(r.Context(), *made)
	}
	if err != nil {
		s.failed(w, r, err)
		return
	}
	write(w, http.StatusOK, object{"ScheduleArn": s.arn(made.Name)})
}

func (s *schedules) get(w http.ResponseWriter, r *http.Request) {
	if !s.here(w, r.URL.Query().Get("groupName")) {
		return
	}
	found, err := s.clock.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		s.failed(w, r, err)
		return
	}
	out := object{"Arn": s.arn(found.Name), "Name": found.Name, "GroupName": s.group, "ScheduleExpression": found.Expression, "ScheduleExpressionTimezone": found.TimeZone,
		"State": state(found.Enabled), "FlexibleTimeWindow": object{"Mode": "OFF"}, "Target": object{"Arn": s.target, "Input": string(found.Input)}}
	if !found.Start.IsZero() {
		out["StartDate"] = found.Start.Unix()
	}
	if !found.End.IsZero() {
		out["EndDate"] = found.End.Unix()
	}
	write(w, http.StatusOK, out)
}

func (s *schedules) delete(w http.ResponseWriter, r *http.Request) {
	if !s.here(w, r.URL.Query().Get("groupName")) {
		return
	}
	name := r.PathValue("name")
	if _, err := s.clock.Get(r.Context(), name); err != nil {
		s.failed(w, r, err)
		return
	}
	if err := s.clock.Delete(r.Context(), name); err != nil {
		s.failed(w, r, err)
		return
	}
	write(w, http.StatusOK, object{})
}

func (s *schedules) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !s.here(w, q.Get("ScheduleGroup")) {
		return
	}
	var token *string
	if text := q.Get("NextToken"); text != "" {
		token = &text
	}
	found, err := s.clock.List(r.Context(), token)
	if err != nil {
		s.failed(w, r, err)
		return
	}
	all := []object{}
	for _, entry := range found.Items {
		all = append(all, object{"Arn": s.arn(entry.Name), "Name": entry.Name, "GroupName": s.group, "State": state(entry.Enabled), "Target": object{"Arn": s.target}})
	}
	out := object{"Schedules": all}
	if found.NextToken != nil {
		out["NextToken"] = *found.NextToken
	}
	write(w, http.StatusOK, out)
}

func (s *schedules) arn(name string) string {
	parts := strings.SplitN(s.target, ":", 6) // in the state machine's account and region
	return strings.Join([]string{parts[0], parts[1], "scheduler", parts[3], parts[4], "schedule/" + s.group + "/" + name}, ":")
}

func (s *schedules) failed(w http.ResponseWriter, r *http.Request, err error) {
	switch f := fault.From(err); {
	case errors.Is(err, clock.ErrNotFound):
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Schedule "+r.PathValue("name")+" does not exist.")
	case errors.Is(err, clock.ErrTooMany):
		refuse(w, http.StatusPaymentRequired, "ServiceQuotaExceededException", err.Error())
	case f.Type == fault.ValidationError:
		refuse(w, http.StatusBadRequest, "ValidationException", f.Message)
	default:
		if r.Context().Err() == nil {
			slog.ErrorContext(r.Context(), "the clock failed a function", "error", err)
		}
		refuse(w, http.StatusInternalServerError, "InternalServerException", "the clock cannot be used")
	}
}

func state(enabled bool) string {
	if enabled {
		return "ENABLED"
	}
	return "DISABLED"
}

func moment(seconds *float64) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	whole, part := math.Modf(*seconds)
	return time.Unix(int64(whole), int64(part*1e9)).UTC()
}
