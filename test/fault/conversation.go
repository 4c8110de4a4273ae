package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// conversation is one after the other of a tenant's threads, as clients hold it who know nothing of the platform's deaths: what is not answered they send
// again, with the key that it had.
type conversation struct {
	*chaos
	*tenant
	number int
	random *rand.Rand

	said    []said
	opened  []string // threads
	tries   int      // how often a message was sent, answered or not
	strange []string // what a repeat was answered
}

// said is a message and what the platform has answered.
type said struct {
	thread, key string
	enters      bool // it has the agent make an entry
	sent
}

// perThread is how many messages a thread has at the most.
const perThread = 20

// hold holds the conversation until it is enough.
func (v *conversation) hold(ctx context.Context, enough <-chan struct{}) error {
	for {
		select {
		case <-enough:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if len(v.said)%perThread == 0 {
			thread, err := v.tenant.open(ctx, fmt.Sprintf("thread-%d-%d", v.number, len(v.opened)))
			if err != nil {
				return err
			}
			v.opened = append(v.opened, thread)
		}
		together := 1 + v.random.IntN(4)/3 // the second is sent while the first is answered
		for range together {
			if err := v.say(ctx); err != nil {
				return err
			}
			if len(v.said)%perThread == 0 {
				break
			}
		}
		for _, s := range v.said[max(0, len(v.said)-together):] {
			if _, err := v.until(ctx, s.TurnID, turn.over); err != nil {
				return err
			}
			v.setOpen(s.key, false)
		}
	}
}

// say sends a message until it is answered, and sometimes once more.
func (v *conversation) say(ctx context.Context) error {
	s := said{thread: v.opened[len(v.opened)-1], key: fmt.Sprintf("message-%d-%d", v.number, len(v.said))}
	body := fmt.Sprintf("/say This is %s.", s.key)
	switch v.random.IntN(4) {
	case 0:
		body = "/slow 40\n" + body
	case 1, 2:
		body, s.enters = task(s.key), true
	}
	again := v.random.IntN(3) == 0
	v.setOpen(s.key, true)
	for {
		v.tries++
		answer, err := v.send(ctx, s.thread, body, s.key)
		switch {
		case errors.As(err, new(refused)):
			return err
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			pause(ctx, 20*time.Millisecond)
		case s.ID == "":
			s.sent = answer
			v.said = append(v.said, s)
			if !again {
				return nil
			}
		default:
			if answer != s.sent {
				v.strange = append(v.strange, fmt.Sprintf("%s: sent again, it is message %s instead of %s", s.key, answer.ID, s.ID))
			}
			return nil
		}
	}
}

// task is a message that has the agent call two tools.
func task(key string) string {
	return "I am ada@example.com.\n/say Let me see.\n/tool book__enter {\"key\":\"" + key + "\"}\n/tool book__look {}"
}
