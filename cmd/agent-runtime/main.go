// Command agent-runtime is the runtime container: it serves turns over the HTTP contract of Amazon Bedrock AgentCore Runtime, on port 8080.
//
// SIGTERM or SIGINT stops it: it takes no more turns, hands the leases of those that run back, and ends within 10 s. A second signal ends it
// at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/caarlos0/env/v11"
	_ "golang.org/x/crypto/x509roots/fallback" // the image has no certificates but these: Mozilla's, pinned by go.sum

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/cloud/awslambda"
	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/cloud/codeinterpreter"
	"github.com/agentplatform/agentplatform/pkg/cloud/ssm"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/otlp"
	"github.com/agentplatform/agentplatform/pkg/runtime"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
	"github.com/agentplatform/agentplatform/pkg/trace"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// settings are those of this command; docs/runtime.md lists them and those of pkg/cloud.
type settings struct {
	Port     int        `env:"PORT" envDefault:"8080"` // AgentCore calls 8080
	MaxTurns int        `env:"MAX_TURNS" envDefault:"16"`
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`
	LogTexts bool       `env:"LOG_ERROR_TEXTS"`             // texts of errors too, which may quote what people have written
	Metrics  string     `env:"METRICS_NAMESPACE"`           // of CloudWatch; empty: none are made
	Traces   string     `env:"OTEL_EXPORTER_OTLP_ENDPOINT"` // a collector; empty: no spans are exported

	Region         string `env:"AWS_REGION"`          // no default: another region's model and queue would be asked
	AppSyncURL     string `env:"APPSYNC_URL"`         // or none: whoever follows an invocation reaches the subscribers
	ToolSecrets    string `env:"TOOL_SECRETS_PREFIX"` // empty: turns are offered no tools of tenants' servers
	FunctionPrefix string `env:"FUNCTION_PREFIX"`     // or none: the thread's next turn runs here, and nobody is woken at a stop
}

// none says that a technology is not there, so that a forgotten setting is not taken for it.
const none = "none"

// stopLimit is how long a stop may take: AgentCore and container engines kill after some 10 s.
const stopLimit = 9 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "agent-runtime:", err)
		os.Exit(1)
	}
}

func run() error {
	var s settings
	if err := env.Parse(&s); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	// As functions log, so that one query finds the lines of both.
	slog.SetDefault(slog.New(trace.Logs(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{Level: s.LogLevel, ReplaceAttr: lambdacontext.ReplaceAttr}), s.LogTexts)))
	if s.Metrics != "" {
		metric.SetDefault(metric.EMF{Namespace: s.Metrics})
	}
	exporter, err := traces(s)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var served *runtime.Server
	runner, err := open(s, func() *runtime.Server { return served })
	if err != nil {
		return err
	}
	defer runner.DB.Close()
	served = runtime.New(runtime.Config{Runner: runner, MaxTurns: s.MaxTurns})

	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(s.Port)))
	if err != nil {
		return fmt.Errorf("PORT: %w", err)
	}
	server := &http.Server{Handler: served, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	slog.Info("serving", "address", listener.Addr().String(), "max_turns", s.MaxTurns)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stop() // a second signal ends the process
	slog.Info("stopping")
	limit, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	err = served.Stop(limit)
	err = errors.Join(err, server.Shutdown(limit))
	if exporter != nil {
		if unsent := exporter.Close(limit); unsent != nil {
			slog.Warn("spans were not exported", "error", unsent)
		}
	}
	slog.Info("stopped")
	return err
}

// traces exports spans, if a collector is named.
func traces(s settings) (*otlp.Exporter, error) {
	if s.Traces == "" {
		return nil, nil
	}
	exporter, err := otlp.Open(context.Background(), "agentplatform-agent-runtime")
	if err == nil {
		trace.SetDefault(exporter)
	}
	return exporter, err
}

// open reaches the technologies. A setting that is missing is an error that names it.
func open(s settings, served func() *runtime.Server) (runner *turn.Runner, err error) {
	defer func() {
		if missing := recover(); missing != nil {
			err = fmt.Errorf("%v", missing)
		}
	}()
	if s.Region == "" {
		return nil, errors.New("AWS_REGION is not set")
	}
	ports, err := cloud.Ports(context.Background(), chain, cloud.DB, bedrock.Model, bedrock.Guardrail, appsync.Publish, awslambda.Invoke, codeinterpreter.Sandbox, ssm.ToolSecrets)
	if err != nil {
		return nil, err
	}
	db, outside := ports.DB(), ports.Egress()
	runner = turn.NewRunner(db, ports.Model(), nil, nil, tool.RunCode(ports.Sandbox()), tool.HTTPFetch(db, outside))
	runner.Guard = guardrail.Checker{Bedrock: ports.Guardrail()}
	if s.ToolSecrets != "" {
		runner.Servers = toolserver.New(db, ports.ToolSecrets(), outside)
	}
	if s.AppSyncURL != none {
		runner.Publish = ports.Publish()
	}
	if s.FunctionPrefix != none {
		invoke := ports.Invoke()
		runner.Dispatch = func(ctx context.Context, tenantID, turnID string) error {
			return invoke.Invoke(ctx, "dispatch-turn", turn.Dispatch{TenantID: tenantID, TurnID: turnID})
		}
		runner.Answer = func(ctx context.Context, tenantID, callbackID string) error {
			return invoke.Invoke(ctx, callback.Function, callback.Task{TenantID: tenantID, CallbackID: callbackID})
		}
		runner.Reply = func(ctx context.Context, tenantID, threadUUID string) error {
			return invoke.Invoke(ctx, turn.DeliverReplies, turn.ReplyTask{TenantID: tenantID, ThreadUUID: threadUUID})
		}
		runner.Evaluate = func(ctx context.Context, t evaluator.Task) error { return invoke.Invoke(ctx, evaluator.Function, t) }
		runner.Summarize = func(ctx context.Context, t turn.SummaryTask) error {
			return invoke.Invoke(ctx, turn.SummarizeFunction, t)
		}
		functions := ports.Call()
		runner.Tools = runner.Tools.With([]tool.Tool{tool.StartRoutine(func(ctx context.Context, payload []byte) ([]byte, error) {
			return functions.Call(ctx, tool.StartRun, payload)
		})})
		if ports.MailFrom() != "" {
			runner.Tools = runner.Tools.With([]tool.Tool{tool.SendEmail(db, func(ctx context.Context, payload []byte) ([]byte, error) {
				return functions.Call(ctx, mail.Function, payload)
			})})
		}
		return runner, nil
	}
	runner.Dispatch = func(_ context.Context, tenantID, turnID string) error {
		reason, err := served().Start(turn.Dispatch{TenantID: tenantID, TurnID: turnID})
		if reason != "" {
			return errors.New("the turn does not run here: " + string(reason))
		}
		return err
	}
	return runner, nil
}

// chain finds credentials wherever the container runs: AgentCore, a container engine, a role of the machine, a profile.
func chain(ctx context.Context) (aws.Config, error) { return config.LoadDefaultConfig(ctx) }
