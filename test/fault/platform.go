package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/pkg/local"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/schema"
)

// up is the line that a platform prints when it is up.
type up struct {
	Outputs  local.Outputs
	Password string
}

// platform is what cmd/local is, without its first conversation, and with crash points. It ends with its standard input, so that it does not outlive who
// started it, or with SIGTERM.
func platform(dir, ports string) error {
	debug.SetGCPercent(local.GCPercent)
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	rows, err := manifest.Parse(schema.Routes)
	if err != nil {
		return err
	}
	var port, tlsPort int
	if _, err := fmt.Sscan(ports, &port, &tlsPort); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	orders := &order{file: orderFile(dir)}
	p, err := local.Start(ctx, local.Config{Dir: dir, Port: port, TLSPort: tlsPort, Model: local.Offline, AnchorInterval: 2 * time.Second,
		Table: functions.Table, Rows: rows, Signal: orders.signal})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(up{p.Outputs, p.Password}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-p.Failed():
	}
	if failed := p.Stop(context.Background()); err == nil {
		err = failed
	}
	return err
}

// order is at which crash point the process is to die: "POINT TIMES" in a file, for the n-th time that it is reached from then on; any is each point.
// It holds for one death.
type order struct {
	file string

	mu   sync.Mutex
	text string
	seen int
}

// anyPoint stands for every crash point of a turn.
const anyPoint = "any"

func orderFile(dir string) string {
	return filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".order")
}

// doneFile says at which crash point the last order was carried out.
func doneFile(order string) string { return order + ".done" }

func (o *order) signal(point string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	raw, err := os.ReadFile(o.file)
	if err != nil {
		return // no order
	}
	if text := string(raw); text != o.text {
		o.text, o.seen = text, 0
	}
	wanted, times := readOrder(o.text)
	if wanted != point && (wanted != anyPoint || strings.Contains(point, ":")) { // of the audit log, which is not what is shown here
		return
	}
	if o.seen++; o.seen < times {
		return
	}
	_ = os.WriteFile(doneFile(o.file), []byte(point), 0o600)
	_ = os.Remove(o.file)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// readOrder takes an order apart. One that is half written is none.
func readOrder(text string) (point string, times int) {
	at := strings.LastIndexByte(text, ' ')
	if !strings.HasSuffix(text, "\n") || at < 0 {
		return "", math.MaxInt
	}
	times, err := strconv.Atoi(strings.TrimSpace(text[at:]))
	if err != nil {
		return "", math.MaxInt
	}
	return text[:at], times
}
