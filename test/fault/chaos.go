package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// chaos is the demonstration.
type chaos struct {
	out           io.Writer
	length        time.Duration // of the killing
	conversations int           // at a time, spread over the tenants
	seed          uint64
	program       string // this one
	verifier      string

	*machine
	book    *book
	tenants []*tenant

	mu      sync.Mutex
	open    map[string]bool // the keys of messages whose turn is not known to be over
	threads []*conversation
	kills   int
	points  map[string]int // where it was killed, and how often
}

// idle is how long the platform may live without coming to a crash point before it is killed where it is.
const idle = 5 * time.Second

// run is the whole of it; false when something was not as it must be.
func (c *chaos) run(ctx context.Context) (ok bool, err error) {
	fmt.Fprintf(c.out, "seed %d: %d conversations in %d tenants while the platform is killed for %s\n", c.seed, c.conversations, len(owners), c.length)
	c.open, c.points = map[string]bool{}, map[string]int{}
	c.book = openBook()
	defer c.book.close()
	if c.machine, err = newMachine(c.program); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	if err := c.start(ctx); err != nil {
		return false, err
	}
	for _, o := range owners {
		t, err := c.enter(ctx, o.tenant, o.email, c.book)
		if err != nil {
			return false, fmt.Errorf("tenant %s: %w", o.tenant, err)
		}
		c.tenants = append(c.tenants, t)
	}
	if err := c.converse(ctx); err != nil {
		return false, fmt.Errorf("%w\n%s", err, c.said())
	}
	r, err := c.count(ctx)
	if err != nil {
		return false, err
	}
	r.print(c.out)
	return len(r.wrong) == 0, nil
}

// converse holds the conversations, and kills the platform under them until the time is over.
func (c *chaos) converse(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	enough := make(chan struct{})
	var all sync.WaitGroup
	for i := range c.conversations {
		t := &conversation{chaos: c, tenant: c.tenants[i%len(c.tenants)], number: i, random: rand.New(rand.NewPCG(c.seed, uint64(i)))}
		c.threads = append(c.threads, t)
		all.Go(func() {
			if err := t.hold(ctx, enough); err != nil {
				cancel(fmt.Errorf("conversation %d: %w", i, err))
			}
		})
	}
	err := c.rampage(ctx)
	close(enough)
	if err != nil {
		cancel(err)
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// rampage kills the platform twice in a row, lets it finish what it was then at, and begins again: the third death of a turn is its end, which is for
// another demonstration.
func (c *chaos) rampage(ctx context.Context) error {
	random := rand.New(rand.NewPCG(c.seed, 1<<32))
	began := time.Now()
	for time.Since(began) < c.length {
		pause(ctx, time.Duration(random.IntN(1000))*time.Millisecond)
		for second := range 2 {
			if err := c.killed(ctx, began, 1+random.IntN(40), second == 1 && random.IntN(2) == 0); err != nil {
				return err
			}
		}
		if err := c.start(ctx); err != nil {
			return err
		}
		if err := c.calm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// killed has the platform die; starting: while it starts and takes up what died with the one before.
func (c *chaos) killed(ctx context.Context, began time.Time, times int, starting bool) error {
	_ = os.Remove(doneFile(orderFile(c.data())))
	running := c.running()
	if starting || running {
		if err := c.order(anyPoint, times); err != nil {
			return err
		}
	}
	var err error
	if !running {
		if err = c.start(ctx); err == nil && !starting {
			err = c.order(anyPoint, times)
		}
	}
	if err != nil && !errors.Is(err, errDied) {
		return err
	}
	select {
	case <-c.ended:
	case <-time.After(idle):
		c.withdraw()
		c.kill()
	case <-ctx.Done():
		return ctx.Err()
	}
	point := "none: it was idle"
	if raw, err := os.ReadFile(doneFile(orderFile(c.data()))); err == nil {
		point = string(raw)
	}
	c.kills++
	c.points[point]++
	fmt.Fprintf(c.out, "%6.1f s  kill -9 at: %s\n", time.Since(began).Seconds(), point)
	return nil
}

func (c *chaos) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// calm waits until what is open now is over.
func (c *chaos) calm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	c.mu.Lock()
	waiting := make([]string, 0, len(c.open))
	for key := range c.open {
		waiting = append(waiting, key)
	}
	c.mu.Unlock()
	for _, key := range waiting {
		for c.isOpen(key) {
			if ctx.Err() != nil {
				return fmt.Errorf("message %s is not answered: %w", key, ctx.Err())
			}
			pause(ctx, 20*time.Millisecond)
		}
	}
	return nil
}

func (c *chaos) isOpen(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[key]
}

func (c *chaos) setOpen(key string, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if open {
		c.open[key] = true
	} else {
		delete(c.open, key)
	}
}
