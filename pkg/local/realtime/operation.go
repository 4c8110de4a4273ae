package realtime

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// maxID is the longest id of an operation, in bytes; clients send UUIDs.
const maxID = 128

// operation is a subscription that runs on a connection.
type operation struct {
	id       string
	prefix   []byte // of its data messages, up to the payload
	render   func(context.Context, json.RawMessage) json.RawMessage
	listener *listener
	expiry   *time.Timer
}

// appendTo makes the frame of an item.
func (i item) appendTo(ctx context.Context, frame []byte) []byte {
	if i.of == nil {
		return append(frame, i.message...)
	}
	frame = append(frame, i.of.prefix...)
	frame = append(frame, i.of.render(ctx, i.event)...)
	return append(frame, '}')
}

// start starts a subscription, or says why not.
func (c *connection) start(m incoming) {
	o, list := c.prepare(m)
	if len(list) > 0 {
		c.send(problems(typeError, m.ID, list...))
		return
	}
	c.operations[o.id] = o
	c.config.Hub.add(o.listener, func() { c.send(outgoing{ID: o.id, Type: typeStarted}.encode()) })
}

// stop ends a subscription; complete is the last that is heard of it.
func (c *connection) stop(id string) {
	o, ok := c.operations[id]
	if !ok {
		c.send(problems(typeError, id, Problem{ErrorType: problemUnknown, Message: "Unknown operation id " + id}))
		return
	}
	delete(c.operations, id)
	c.detach(o)
	c.send(outgoing{ID: id, Type: typeComplete}.encode())
}

func (c *connection) detach(o *operation) {
	o.expiry.Stop()
	c.config.Hub.remove(o.listener)
}

// prepare checks a start message and everything it needs, and makes its operation: not yet in the hub.
func (c *connection) prepare(m incoming) (*operation, []Problem) {
	request, claims, problem := c.request(m)
	if problem != nil {
		return nil, []Problem{*problem}
	}
	lasts, problem := c.lasts(claims)
	if problem != nil {
		return nil, []Problem{*problem}
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.config.StartTimeout)
	defer cancel()
	requestID := ident.New()
	subscription, list := c.config.Executor.Subscribe(ctx, request, claims, requestID)
	if len(list) > 0 {
		return nil, list
	}
	o := &operation{id: m.ID, render: subscription.Render}
	listener, err := newListener(subscription.Field, subscription.Filter, func(event json.RawMessage) { c.queue.put(item{event: event, of: o}) })
	if err != nil {
		c.config.Log.Error("realtime: subscription refused", "connection", c.id, "request_id", requestID, "error", err)
		return nil, []Problem{{ErrorType: string(fault.InternalError), Message: "internal error (request " + requestID + ")"}}
	}
	o.listener = listener
	id, _ := json.Marshal(m.ID) // a string always can be
	o.prefix = fmt.Appendf(nil, `{"id":%s,"type":"%s","payload":`, id, typeData)
	o.expiry = time.AfterFunc(lasts, func() { c.end(closedUnauthorized, "Token expired") })
	return o, nil
}

// request takes a start message apart and verifies its token.
func (c *connection) request(m incoming) ([]byte, tenant.Claims, *Problem) {
	var s start
	switch {
	case m.ID == "" || len(m.ID) > maxID:
		return nil, nil, &Problem{ErrorType: problemBadRequest, Message: fmt.Sprintf("start needs an id of 1 to %d bytes", maxID)}
	case c.operations[m.ID] != nil:
		return nil, nil, &Problem{ErrorType: problemDuplicate, Message: "Duplicated operation with id " + m.ID}
	case len(c.operations) >= c.config.MaxSubscriptions:
		return nil, nil, &Problem{ErrorType: problemTooMany, Message: fmt.Sprintf("Max number of %d subscriptions reached", c.config.MaxSubscriptions)}
	case json.Unmarshal(m.Payload, &s) != nil:
		return nil, nil, &Problem{ErrorType: problemBadRequest, Message: "the payload of start is {data: JSON text of {query, variables}, extensions: {authorization: {Authorization, host}}}"}
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.config.StartTimeout)
	defer cancel()
	claims, err := c.config.Verifier.Verify(ctx, s.Extensions.Authorization.Token)
	if err != nil {
		p := refusal(err)
		if p.ErrorType == string(fault.InternalError) {
			c.config.Log.Error("realtime: token not verified", "connection", c.id, "error", err)
		}
		p.ErrorCode = 0
		return nil, nil, &p
	}
	return []byte(s.Data), claims, nil
}

// lasts is how long a subscription of these claims may run.
func (c *connection) lasts(claims tenant.Claims) (time.Duration, *Problem) {
	var exp float64
	switch value := claims["exp"].(type) {
	case float64:
		exp = value
	case int64:
		exp = float64(value)
	case json.Number:
		exp, _ = value.Float64()
	}
	lasts := time.Until(time.UnixMicro(int64(exp*1e6))) + c.config.ExpiryGrace
	if lasts <= 0 { // or no exp at all
		return 0, &Problem{ErrorType: problemUnauthorized, Message: "Token expired"}
	}
	return lasts, nil
}
