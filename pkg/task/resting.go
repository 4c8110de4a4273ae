package task

import (
	"maps"
	"sync"
	"time"
)

// resting are the connections that are not to be used for a while, in the memory of one instance. It is safe for concurrent use.
type resting struct {
	mutex sync.Mutex
	until map[string]time.Time // by connection
}

// rest has a connection left alone for a while.
func (r *resting) rest(connectionID string, how time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := time.Now()
	if r.until == nil {
		r.until = map[string]time.Time{}
	}
	maps.DeleteFunc(r.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	r.until[connectionID] = now.Add(how)
}

func (r *resting) rests(connectionID string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return time.Now().Before(r.until[connectionID])
}
