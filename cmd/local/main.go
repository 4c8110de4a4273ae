// Command local runs the whole platform on one machine and holds a first conversation with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/lmittmann/tint"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/local"
	"github.com/agentplatform/agentplatform/pkg/local/metrics"
	"github.com/agentplatform/agentplatform/pkg/local/sandbox"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/otlp"
	"github.com/agentplatform/agentplatform/pkg/trace"
	"github.com/agentplatform/agentplatform/schema"
)

// settings are read from the environment; docs/local.md lists them.
type settings struct {
	DataDir         string        `env:"DATA_DIR" envDefault:".local"`
	Port            int           `env:"PORT" envDefault:"8787"`
	TLSPort         int           `env:"TLS_PORT" envDefault:"8788"`
	Password        string        `env:"LOCAL_PASSWORD"`
	DatabaseURL     string        `env:"DATABASE_URL"`
	Model           local.Model   `env:"MODEL" envDefault:"offline"`
	ModelID         string        `env:"MODEL_ID"`
	BedrockEndpoint string        `env:"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"`
	Operators       string        `env:"SERVICE_PLATFORM_OPERATOR_EMAILS"`
	AnchorInterval  time.Duration `env:"ANCHOR_INTERVAL" envDefault:"30s"`
	WitnessURL      string        `env:"ANCHOR_WITNESS_URL"`
	WitnessKey      string        `env:"ANCHOR_WITNESS_KEY"`
	AgentRuntimes   string        `env:"AGENT_RUNTIMES"`
	LogLevel        slog.Level    `env:"LOG_LEVEL" envDefault:"warn"`
	LogTexts        bool          `env:"LOG_ERROR_TEXTS"`
	Traces          string        `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
}

func main() {
	sandbox.Worker() // a script of a model runs in this program, started once more
	once := flag.Bool("once", false, "stop after the first conversation")
	functions := flag.String("functions", "", "run the functions as processes of their own: `folder` of their binaries, built for this machine")
	flag.Parse()
	debug.SetGCPercent(local.GCPercent)
	if err := run(*once, *functions); err != nil {
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

func run(once bool, functionFolder string) error {
	var s settings
	if err := env.Parse(&s); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	if s.Model != local.Offline && s.Model != local.Bedrock {
		return fmt.Errorf("MODEL=%s is not a model; use offline or bedrock", s.Model)
	}
	slog.SetDefault(slog.New(trace.Logs(tint.NewTextHandler(os.Stderr, &tint.Options{Level: s.LogLevel, TimeFormat: time.TimeOnly, NoColor: !isTerminal(os.Stderr)}), s.LogTexts)))
	figures := metrics.New()
	metric.SetDefault(figures)
	if s.Traces != "" {
		exporter, err := otlp.Open(context.Background(), "agentplatform-local")
		if err != nil {
			return err
		}
		trace.SetDefault(exporter)
		defer closeTraces(exporter)
	}
	runtimes, err := agentcore.Parse(s.AgentRuntimes)
	if err != nil {
		return err
	}
	rows, err := manifest.Parse(schema.Routes)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	began := time.Now()
	fmt.Println("starting the database, object storage, identity pool and model …")
	p, err := local.Start(ctx, local.Config{Dir: s.DataDir, Port: s.Port, TLSPort: s.TLSPort, Password: s.Password, DatabaseURL: s.DatabaseURL,
		Model: s.Model, ModelID: s.ModelID, BedrockEndpoint: s.BedrockEndpoint, Operators: s.Operators,
		Functions: functionFolder, AnchorInterval: s.AnchorInterval, WitnessURL: s.WitnessURL, WitnessKey: s.WitnessKey, Runtimes: runtimes, Table: functions.Table, Rows: rows, Metrics: figures, Log: progress()})
	if err != nil && ctx.Err() != nil {
		fmt.Println("\nstopped before the platform was up; the next start goes on from there")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Printf("the platform is up after %s\n\n", time.Since(began).Round(time.Millisecond))
	err = converse(ctx, p, began)
	var operator *client
	var event string
	if err == nil {
		operator, event, err = showAudit(ctx, p, began)
	}
	if err == nil && !once {
		announce(p)
		err = wait(ctx, p, operator, event)
		fmt.Println("\nstopping …")
	}
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	stop() // a second Ctrl-C ends the process at once
	return errors.Join(err, p.Stop(context.Background()))
}

// closeTraces exports what is left.
func closeTraces(e *otlp.Exporter) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		slog.Warn("spans were not exported", "error", err)
	}
}

// wait runs the platform until it is told to stop, and says when the conversation's events are anchored.
func wait(ctx context.Context, p *local.Platform, operator *client, event string) error {
	watching, cancel := context.WithCancel(ctx)
	anchored := make(chan error, 1)
	go func() { anchored <- showAnchor(watching, operator, event) }()
	defer func() {
		cancel()
		if err := <-anchored; err != nil && !errors.Is(err, context.Canceled) {
			slog.Error("waiting for the next anchor", "error", err)
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.Failed():
		return err
	}
}

// progress tells what takes time at a start, as plain lines.
func progress() *slog.Logger {
	return slog.New(tint.NewTextHandler(os.Stdout, &tint.Options{Level: slog.LevelInfo, NoColor: true, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
