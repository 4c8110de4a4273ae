package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is what was found when all was over.
type report struct {
	kills, points          int
	conversations, tenants int
	messages, tries        int // messages, and how often they were sent
	answered               int // messages with one answer
	extra                  int // messages that nobody has sent
	turns, resumed, dead   int
	together               int // pairs of turns of a thread that ran at the same time
	entries, twice, unsure int // calls with an effect outside; those made twice; those whose outcome is not known
	spent, cost, reserved  int64
	verified               bool
	wrong                  []string
}

// count reads everything back.
func (c *chaos) count(ctx context.Context) (*report, error) {
	r := &report{kills: c.kills, points: len(c.points), conversations: len(c.threads), tenants: len(c.tenants)}
	for _, v := range c.threads {
		r.wrong = append(r.wrong, v.strange...)
		r.messages, r.tries = r.messages+len(v.said), r.tries+v.tries
		for _, thread := range v.opened {
			if err := r.thread(ctx, v, thread); err != nil {
				return nil, err
			}
		}
	}
	times := c.book.times()
	for _, key := range slices.Sorted(maps.Keys(times)) {
		if times[key] > 1 {
			r.twice++
			r.complain("entry %s was made %d times", key, times[key])
		}
	}
	for _, t := range c.tenants {
		spent, reserved, err := t.money(ctx)
		if err != nil {
			return nil, err
		}
		r.spent, r.reserved = r.spent+spent, r.reserved+reserved
	}
	if r.spent != r.cost {
		r.complain("the budgets have spent %s, and the turns cost %s", dollars(r.spent), dollars(r.cost))
	}
	if r.reserved != 0 {
		r.complain("%s are still reserved", dollars(r.reserved))
	}
	said, ok := c.verify(ctx, c.verifier)
	if r.verified = ok; !ok {
		r.complain("the audit log: %s", said)
	}
	return r, ctx.Err()
}

func (r *report) complain(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// thread looks at one of a conversation's threads.
func (r *report) thread(ctx context.Context, v *conversation, thread string) error {
	h, err := v.read(ctx, thread)
	if err != nil {
		return err
	}
	wrong, err := v.told(ctx, h)
	if err != nil {
		return err
	}
	r.wrong = append(r.wrong, wrong...)
	found := h.overlaps()
	r.together += len(found)
	r.wrong = append(r.wrong, found...)
	cost, err := costs(h.Turns.Items...)
	if err != nil {
		return err
	}
	r.cost += cost
	for _, t := range h.Turns.Items {
		r.turns++
		if t.Attempts > 1 {
			r.resumed++
		}
		if t.Status != "succeeded" {
			r.dead++
			r.complain("%s: turn %s is %s: %s", thread, t.ID, t.Status, value(t.Error))
		}
		for _, o := range t.ToolOutcomes {
			if o.Error != nil && strings.Contains(*o.Error, "outcome unknown") {
				r.unsure++
			}
		}
	}
	users := map[string]bool{} // messages of the thread
	for _, m := range h.Messages.Items {
		if m.Role == "user" {
			users[m.ID] = true
		}
	}
	r.extra += len(users)
	for _, s := range v.said {
		if s.thread != thread {
			continue
		}
		r.extra--
		if s.enters {
			r.entries++
		}
		switch n := len(h.replies(s.TurnID)); {
		case !users[s.ID]:
			r.complain("%s: message %s is lost", thread, s.key)
		case n != 1:
			r.complain("%s: message %s has %d answers", thread, s.key, n)
		default:
			r.answered++
		}
	}
	return nil
}

func value(s *string) string {
	if s == nil {
		return "no reason"
	}
	return *s
}

func dollars(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	return fmt.Sprintf("%s$%d.%06d", sign, micros/1e6, micros%1e6)
}

// print writes the table, and what is wrong.
func (r *report) print(out io.Writer) {
	if r.extra != 0 {
		r.complain("there are %d messages more than were sent", r.extra)
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w)
	for _, line := range []struct {
		what  string
		value any
	}{
		{"kill -9 of the platform", fmt.Sprintf("%d, at %d different points", r.kills, r.points)},
		{"conversations, tenants", fmt.Sprintf("%d, %d", r.conversations, r.tenants)},
		{"messages sent", r.messages},
		{"  answered exactly once", r.answered},
		{"  sent again with their key", r.tries - r.messages},
		{"  more than were sent", r.extra},
		{"turns", r.turns},
		{"  resumed after a kill", r.resumed},
		{"  that did not succeed", r.dead},
		{"  two at once in a thread", r.together},
		{"tool calls with an effect outside", r.entries},
		{"  made twice", r.twice},
		{"  told to the model as “interrupted, outcome unknown”", r.unsure},
		{"budgets: spent, beyond what the turns cost", dollars(r.spent - r.cost)},
		{"budgets: still reserved", dollars(r.reserved)},
		{"audit log verified", map[bool]string{true: "yes", false: "NO"}[r.verified]},
	} {
		fmt.Fprintf(w, "%s\t%v\n", line.what, line.value)
	}
	w.Flush()
	fmt.Fprintln(out)
	for i, s := range r.wrong {
		if i == 20 {
			fmt.Fprintf(out, "WRONG: and %d more\n", len(r.wrong)-i)
			break
		}
		fmt.Fprintln(out, "WRONG:", s)
	}
	if len(r.wrong) == 0 {
		fmt.Fprintln(out, "all as it must be")
	}
}
