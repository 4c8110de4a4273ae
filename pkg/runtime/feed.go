package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// writeLimit is how long a client may take to read what there is; one that takes longer is cut off, and its turn goes on.
const writeLimit = 30 * time.Second

var errNobody = errors.New("runtime: nobody follows the turn")

// feed is what one invocation's client is still to be told. Whoever runs the turn never waits for the client; what piles up meanwhile is no
// more than one turn's text and states.
type feed struct {
	mu      sync.Mutex
	pending bytes.Buffer
	left    bool // the client has gone, or there never was one
	ended   bool
	wake    chan struct{} // 1 deep
}

// newFeed is a feed that nobody follows yet.
func newFeed() *feed { return &feed{left: true, wake: make(chan struct{}, 1)} }

// followed is a feed for a client.
func followed() *feed {
	f := newFeed()
	f.left = false
	return f
}

// Publish implements publish.Publisher: each event is one of progress. Without a client, only what must not be lost is an error.
func (f *feed) Publish(_ context.Context, events ...publish.Event) error {
	for _, e := range events {
		data, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		if !f.put(agentcore.EventProgress, data) && e.Repeatable() {
			return errNobody
		}
	}
	return nil
}

// end is the last event: how the turn ended, or that it goes on elsewhere.
func (f *feed) end(status turn.Status) {
	name, data := agentcore.EventReleased, map[string]turn.Status{}
	if status != "" {
		name, data["status"] = agentcore.EventDone, status
	}
	f.tell(name, data)
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.signal()
}

func (f *feed) tell(name agentcore.EventName, data any) {
	encoded, _ := json.Marshal(data) // maps of texts
	f.put(name, encoded)
}

// put queues an event; false: the client has gone. JSON has no line ends, so it is one line of data.
func (f *feed) put(name agentcore.EventName, data []byte) bool {
	f.mu.Lock()
	if f.left {
		f.mu.Unlock()
		return false
	}
	fmt.Fprintf(&f.pending, "event: %s\ndata: %s\n\n", name, data)
	f.mu.Unlock()
	f.signal()
	return true
}

func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// follow writes the feed to the client until its end, or until the client has gone.
func (f *feed) follow(ctx context.Context, w http.ResponseWriter) {
	to := http.NewResponseController(w)
	for {
		f.mu.Lock()
		chunk, ended := bytes.Clone(f.pending.Bytes()), f.ended
		f.pending.Reset()
		f.mu.Unlock()
		if len(chunk) > 0 {
			_ = to.SetWriteDeadline(time.Now().Add(writeLimit)) // a recorder has none
			if _, err := w.Write(chunk); err != nil || to.Flush() != nil {
				f.leave()
				return
			}
		}
		if ended {
			return
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			f.leave()
			return
		}
	}
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = true
	f.pending = bytes.Buffer{}
}
