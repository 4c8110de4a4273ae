// Command fault shows what becomes of conversations while their platform is killed, over and over, at any moment: every message is answered, once.
//
// It starts the platform in a process of its own (this program once more), on a folder that is removed afterwards, holds
// conversations in several tenants over the public API, and has the process kill itself with SIGKILL at crash points chosen at random: places in the code of a
// turn, between any two of which it may die. After the last restart it reads all back and prints what it found. The tests beside it go through every crash
// point, one by one.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agentplatform/agentplatform/pkg/local/sandbox"
)

func main() {
	sandbox.Worker() // a script of a model runs in this program, started once more
	dir := flag.String("platform", "", "be the platform, on this data `directory`")
	ports := flag.String("ports", "0 0", "the platform's `ports`, plain and TLS")
	c := chaos{out: os.Stdout}
	flag.DurationVar(&c.length, "for", 75*time.Second, "how `long` the platform is killed")
	flag.IntVar(&c.conversations, "conversations", 12, "how `many` there are at a time")
	flag.Uint64Var(&c.seed, "seed", rand.Uint64()>>32, "of what is random: the same `number` chooses the same messages and crash points")
	flag.Parse()
	if *dir != "" {
		if err := platform(*dir, *ports); err != nil {
			fmt.Fprintln(os.Stderr, "platform:", err)
			os.Exit(1)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fault:", err)
		os.Exit(1)
	}
	c.program, c.verifier = self, filepath.Join(filepath.Dir(self), "audit-verifier")
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := c.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fault:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}
