package asl

import (
	"math"
	"slices"
	"time"
)

// retrier is one of a state's Retry.
type retrier struct {
	errors   []string
	interval time.Duration
	attempts int
	rate     float64
	most     time.Duration // MaxDelaySeconds; 0 is none
	jitter   bool
}

// catcher is one of a state's Catch.
type catcher struct {
	errors []string
	next   string
	place  *place
}

// maxDelay is the longest time between attempts, whatever BackoffRate makes of it.
const maxDelay = maxSeconds * time.Second

// matches says whether a failure is one of those that ErrorEquals names.
//
//   - States.Runtime is never retried or caught: the definition does not fit its data, and would not after another attempt.
//   - States.ALL is each, but for States.DataLimitExceeded.
//   - States.TaskFailed is each but for that and timeouts.
//   - A missing heartbeat is States.HeartbeatTimeout, and States.Timeout as well.
func matches(errors []string, name string) bool {
	if name == ErrorRuntime {
		return false
	}
	return slices.ContainsFunc(errors, func(wanted string) bool {
		switch wanted {
		case name:
			return true
		case ErrorAll:
			return name != ErrorDataLimit
		case ErrorTaskFailed:
			return name != ErrorDataLimit && name != ErrorTimeout && name != ErrorHeartbeatTimeout
		case ErrorTimeout:
			return name == ErrorHeartbeatTimeout
		}
		return false
	})
}

// Retry says whether a failure is tried again: by which retrier and after what time. counts has the attempts that each retrier has already given (shorter
// is as if zeros followed); who tries again adds one to counts[which]. random is from 0 up to 1, for JitterStrategy.
func (s *State) Retry(f Failure, counts []int, random func() float64) (which int, after time.Duration, again bool) {
	for i := range s.retriers {
		r := &s.retriers[i]
		if !matches(r.errors, f.Error) {
			continue
		}
		given := 0
		if i < len(counts) {
			given = counts[i]
		}
		if given >= r.attempts {
			return i, 0, false // no other retrier is asked
		}
		return i, r.delay(given, random), true
	}
	return 0, 0, false
}

// Retriers is how many retriers a state has.
func (s *State) Retriers() int { return len(s.retriers) }

func (r *retrier) delay(given int, random func() float64) time.Duration {
	most := float64(maxDelay)
	if r.most > 0 {
		most = float64(r.most)
	}
	delay := min(float64(r.interval)*math.Pow(r.rate, float64(given)), most)
	if r.jitter {
		delay *= random()
	}
	return time.Duration(delay)
}

// Catch is where a failure goes on, if some catcher takes it: the state and its input, which is the raw input with {"Error", "Cause"} in it by the
// catcher's ResultPath. bad is the failure of doing so, which nothing catches.
func (s *State) Catch(f Failure, raw any, c Context) (next string, output any, caught bool, bad *Failure) {
	for i := range s.catchers {
		k := &s.catchers[i]
		if !matches(k.errors, f.Error) {
			continue
		}
		output, bad = k.place.put(raw, map[string]any{"Error": f.Error, "Cause": f.Cause})
		if bad == nil {
			bad = fits("The output of the state '"+s.Name+"'", output)
		}
		if bad != nil {
			return "", nil, false, bad
		}
		return k.next, output, true, nil
	}
	return "", nil, false, nil
}
