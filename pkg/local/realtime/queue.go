package realtime

import (
	"encoding/json"
	"sync"

	"github.com/coder/websocket"
)

// item waits to be written: a message as it is, or an event to be rendered for a subscription.
type item struct {
	message []byte
	event   json.RawMessage
	of      *operation
}

func (i item) size() int { return len(i.message) + len(i.event) }

// queue is what waits for one connection, and how the connection is to end. It never blocks the one who puts.
type queue struct {
	frames int // how many items may wait
	bytes  int // how many bytes may wait; one item may always wait

	ready chan struct{} // holds a token when there is something to do

	mu      sync.Mutex // taken last
	waiting []item
	size    int
	ended   bool
	code    websocket.StatusCode
	reason  string
}

func newQueue(frames, bytes int) *queue {
	return &queue{frames: frames, bytes: bytes, ready: make(chan struct{}, 1)}
}

// put appends i, unless the queue has ended. When it is full the connection is not keeping up: everything is dropped and it ends.
func (q *queue) put(i item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	if len(q.waiting) > 0 && (len(q.waiting) >= q.frames || q.size+i.size() > q.bytes) {
		q.waiting, q.size = nil, 0
		q.ended, q.code, q.reason = true, websocket.StatusTryAgainLater, "this connection does not keep up with its events"
	} else {
		q.waiting = append(q.waiting, i)
		q.size += i.size()
	}
	q.wake()
}

// end lets what waits be written, then closes with code. Only the first end counts.
func (q *queue) end(code websocket.StatusCode, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.ended, q.code, q.reason = true, code, reason
		q.wake()
	}
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take gives the next item, if any. Nothing left and ended: it is time to close.
func (q *queue) take() (i item, ok, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.waiting = nil // the array's start is used up
		return item{}, false, q.ended
	}
	i = q.waiting[0]
	q.waiting[0] = item{}
	q.waiting = q.waiting[1:]
	q.size -= i.size()
	return i, true, false
}

// over says whether the connection is ending.
func (q *queue) over() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ended
}

// ending is the code and reason to close with.
func (q *queue) ending() (websocket.StatusCode, string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.code, q.reason
}
