package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/agentplatform/agentplatform/pkg/publish"
)

// Hub hands events to the subscriptions of this process. It implements publish.Publisher; publishing what nobody listens to is one look
// into a map. Events of one Publish, and of one goroutine, arrive in order; those of several goroutines in any order.
type Hub struct {
	mu        sync.RWMutex // taken before a connection's lock, never while one is held
	listeners map[publish.Address]map[*listener]struct{}
}

// NewHub makes an empty hub.
func NewHub() *Hub { return &Hub{listeners: map[publish.Address]map[*listener]struct{}{}} }

// listener is one subscription as the hub sees it.
type listener struct {
	address publish.Address
	rest    map[string]json.RawMessage // further members of an event that must be equal
	receive func(event json.RawMessage)
}

// newListener files a subscription by its filter.
func newListener(field string, filter map[string]any, receive func(json.RawMessage)) (*listener, error) {
	f, ok := feeds[field]
	if !ok {
		return nil, fmt.Errorf("nothing is published for %q", field)
	}
	tenantID, _ := filter["tenantId"].(string)
	subject, _ := filter[f.subject].(string)
	l := &listener{address: publish.Address{Topic: f.topic, TenantID: tenantID, Subject: subject}, receive: receive}
	if err := l.address.Check(); err != nil {
		return nil, fmt.Errorf("the filter of %s does not name tenantId and %s: %w", field, f.subject, err)
	}
	for name, value := range filter {
		if name == "tenantId" || name == f.subject {
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if l.rest == nil {
			l.rest = map[string]json.RawMessage{}
		}
		l.rest[name] = raw
	}
	return l, nil
}

// add files l. added runs before the first event can reach l, and after it no event is missed.
func (h *Hub) add(l *listener, added func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.listeners[l.address]
	if at == nil {
		at = map[*listener]struct{}{}
		h.listeners[l.address] = at
	}
	at[l] = struct{}{}
	added()
}

// remove takes l out; when it returns, l receives nothing more.
func (h *Hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.listeners[l.address]
	delete(at, l)
	if len(at) == 0 {
		delete(h.listeners, l.address)
	}
}

// Publish implements publish.Publisher. It does not wait for subscribers.
func (h *Hub) Publish(_ context.Context, events ...publish.Event) error {
	for i, e := range events {
		if err := h.publish(e); err != nil {
			return fmt.Errorf("publish %T (%d of %d): %w", e, i+1, len(events), err)
		}
	}
	return nil
}

func (h *Hub) publish(e publish.Event) error {
	address := e.Address()
	if err := address.Check(); err != nil {
		return err
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	at := h.listeners[address]
	if len(at) == 0 {
		return nil
	}
	event, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	for l := range at {
		if len(l.rest) == 0 || l.matches(event) {
			l.receive(event)
		}
	}
	return nil
}

// matches compares the members that the address does not cover.
func (l *listener) matches(event json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(event, &members) != nil {
		return false
	}
	for name, want := range l.rest {
		if !bytes.Equal(members[name], want) {
			return false
		}
	}
	return true
}
