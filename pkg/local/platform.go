// Package local is the whole platform on one machine: the same functions, schema, policies and wire protocols as in the cloud, with a local
// adapter behind each technology. Nothing in it is a mock: PostgreSQL, the S3 store, the tokens, the model's wire format are real.
//
// Everything durable is under Config.Dir (secrets.env, postgres/, objects/, identity/, tls/, outbox/, dead-letters/, tool-secrets/, integration-secrets/, connection-secrets/), so a second start goes on where the first ended,
// also when that one was killed.
package local

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/local/clock"
	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/local/letters"
	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/local/pool"
	"github.com/agentplatform/agentplatform/pkg/local/realtime"
	engine "github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Config says where the platform keeps its data and where it listens.
type Config struct {
	Dir         string // data directory. Required
	Port        int    // plain port, 0 = a free one
	TLSPort     int    // TLS port, 0 = a free one
	Password    string // of the seeded users; empty: made once and kept in secrets.env
	DatabaseURL string // an existing PostgreSQL ≥ 15, as a role that may create roles; empty: one of our own

	Model           Model  // which model answers
	ModelID         string // model id of the seeded agents; empty: the model's own default
	BedrockEndpoint string // where the Bedrock wire format is spoken; empty: the offline model's own listener, or AWS

	Converse  model.Model // tests and benchmarks: answers in place of the Bedrock client
	Operators string      // platform operators' e-mail addresses, comma-separated; default the seeded one

	AnchorInterval time.Duration // of the audit log's cadences; default 30 s
	WitnessURL     string        // a C2SP tlog-witness that cosigns the audit log's checkpoints; empty: none
	WitnessKey     string        // its verifier key

	RetryAfter time.Duration // from the first try of an asynchronous call that fails to the second; twice as long from there to the third; default 1 s

	Runtimes map[string]agentcore.Target // agent runtimes on this machine, by selector; none: turns run in process

	Functions string // a folder of the functions' binaries for this machine, each named as its function; empty: they run in this process

	DatabaseConns int                            // of the platform's pool; default 4 a processor, at least 8
	Table         map[string]handler.Constructor // the functions. Required
	Rows          manifest.Manifest              // the manifest. Required
	Signal        func(point string)             // tests: crash points of a turn
	Metrics       http.Handler                   // the page /local/metrics; nil: there is none
	Log           *slog.Logger                   // told what takes time at the start; default nobody
}

// GCPercent is the garbage collector's setting for a process that is the platform: its live heap is small, so the default would collect
// many times a second under load. Processes call debug.SetGCPercent with it.
const GCPercent = 400

// Model is which model answers.
type Model string

const (
	Offline Model = "offline" // the one in this package's neighbour, without network
	Bedrock Model = "bedrock" // Amazon Bedrock, with credentials from the environment
)

const (
	region        = "us-east-1"
	anchorBucket  = "agentplatform-local-anchors"
	exportsBucket = "agentplatform-local-exports"
	mailBucket    = "agentplatform-local-mail"

	mailFrom   = "agents@localhost.localdomain" // where the mails of its outbox come from
	mailDomain = "in.localhost.localdomain"     // whose mails its inbox takes

	anchorOrigin    = "agentplatform.local/audit"
	anchorRetention = 400 * 24 * time.Hour
)

// Platform is a running platform.
type Platform struct {
	Outputs  Outputs
	Password string // of the seeded users

	config   Config
	claim    *os.File // on the data directory, while it is open
	secrets  *secrets
	plain    *listener
	tls      *listener
	database *database
	objects  *bucket.Server
	sent     *outbox.Outbox // mails and pushes
	pool     *pool.Pool
	signer   sign.Signer
	users    []string // addresses of the seeded tenants' users
	model    *modelPort
	kept     []category      // tenants' secrets
	scripts  sandbox.Sandbox // runs code of models
	programs sandbox.Sandbox // runs the code interpreter's programs, for functions in processes of their own
	queue    *queue
	clock    *clock.Clock   // starts tenants' schedules
	engine   *engine.Engine // runs state machines
	host     *host.Host     // of the functions in processes of their own; nil: they run in this one
	aws      *listener      // what those find in place of AWS
	sockets  *realtime.Server
	failed   chan error
	stopping chan struct{} // closed by Stop
	watching sync.WaitGroup

	engines     sync.WaitGroup     // the clock and the engine, while they work
	stopEngines context.CancelFunc // ends that; nil: they have not begun
}

// Start brings everything up; what cannot start makes it fail with one line that says what to do. ctx bounds the start only.
func Start(ctx context.Context, c Config) (_ *Platform, err error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.DatabaseConns == 0 {
		c.DatabaseConns = max(8, 4*runtime.NumCPU())
	}
	if c.Operators == "" {
		c.Operators = Operator
	}
	if c.AnchorInterval == 0 {
		c.AnchorInterval = 30 * time.Second
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = time.Second // where the cloud waits a minute
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, err
	}
	if err := checkRuntimes(c.Runtimes); err != nil {
		return nil, err
	}
	p := &Platform{config: c, failed: make(chan error, 4), stopping: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if err := p.listen(); err != nil {
		return nil, err
	}
	if p.claim, err = claimDir(c.Dir); err != nil {
		return nil, err
	}
	if err := p.openSecrets(); err != nil {
		return nil, err
	}
	if err := p.openSandbox(); err != nil {
		return nil, err
	}
	if err := p.openHost(); err != nil {
		return nil, err
	}
	if err := p.openParts(ctx); err != nil {
		return nil, err
	}
	return p, p.serve(ctx)
}

// openSecrets reads the secrets, or makes them before anything uses one.
func (p *Platform) openSecrets() (err error) {
	if p.secrets, err = openSecrets(p.config.Dir); err != nil {
		return err
	}
	if strings.ContainsAny(p.config.Password, "'\r\n") {
		return errors.New("LOCAL_PASSWORD must not hold quotes (') or line ends; choose another one")
	}
	if p.config.Password != "" {
		p.secrets.values["LOCAL_PASSWORD"] = p.config.Password
	}
	for _, name := range secretNames {
		p.secrets.get(name)
	}
	p.Password = p.secrets.get("LOCAL_PASSWORD")
	if err := p.secrets.save(); err != nil { // first: what is kept under a key must not outlive it
		return err
	}
	p.kept, err = openCategories(p.config.Dir, p.secrets)
	return err
}

// openParts starts what does not depend on one another, at the same time.
func (p *Platform) openParts(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if p.database, err = openDatabase(ctx, p.config, p.secrets); err != nil {
			return err
		}
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) {
			p.users, err = seed(ctx, p.database.app, p.outbox(), p.modelID())
			return err
		})
		g.Go(func() error { return p.openEngines(ctx) })
		return g.Wait()
	})
	g.Go(func() (err error) {
		p.signer, p.Outputs.AnchorPublicKey, err = openSigner(ctx, filepath.Join(p.config.Dir, "audit"))
		return err
	})
	g.Go(func() (err error) {
		p.objects, err = bucket.Start(ctx, bucket.Config{Dir: filepath.Join(p.config.Dir, "objects"), Region: region,
			RootKey: "platform", RootSecret: p.secrets.get("S3_ROOT_SECRET"), ReaderKey: "reader", ReaderSecret: p.secrets.get("S3_READER_SECRET"),
			Buckets: []bucket.Bucket{{Name: anchorBucket, ObjectLock: true, Versioning: true}, {Name: exportsBucket}, {Name: mailBucket},
				{Name: "agentplatform-local-skills", Versioning: true}, {Name: "agentplatform-local-knowledge", Versioning: true}, {Name: "agentplatform-local-assets"}}})
		return err
	})
	g.Go(func() (err error) {
		p.sent, err = outbox.Open(outbox.Config{Dir: filepath.Join(p.config.Dir, "outbox")})
		return err
	})
	g.Go(func() (err error) {
		p.pool, err = pool.New(pool.Config{Dir: filepath.Join(p.config.Dir, "identity"), BaseURL: p.plain.url("http"), Region: region,
			Password: p.Password, PreToken: p.preToken, PostAuthentication: p.postAuthentication, SignInFailed: p.signInFailed})
		return err
	})
	g.Go(func() error {
		cert, ca, err := certificate(filepath.Join(p.config.Dir, "tls"))
		p.tls.certificate = cert
		p.Outputs.CAFile = ca
		return err
	})
	g.Go(func() (err error) {
		p.model, err = openModel(ctx, p.config)
		return err
	})
	return g.Wait()
}

// preToken is the pool's trigger: the platform's own function, by its manifest name.
func (p *Platform) preToken(ctx context.Context, e events.CognitoEventUserPoolsPreTokenGenV2_0) (events.CognitoEventUserPoolsPreTokenGenV2_0, error) {
	answer, err := call(ctx, p.queue.functions["pre-token"], e)
	return answer, told(err)
}

// postAuthentication is the pool's trigger after a sign-in.
func (p *Platform) postAuthentication(ctx context.Context, e pool.SignedIn) (pool.SignedIn, error) {
	answer, err := call(ctx, p.queue.functions["post-authentication"], e)
	return answer, told(err)
}

// signInFailed tells of a sign-in that the pool refused.
func (p *Platform) signInFailed(ctx context.Context, f pool.FailedSignIn) {
	if err := p.queue.Invoke(ctx, "sign-in-failed", f); err != nil {
		slog.Error("a failed sign-in could not be recorded", "error", err)
	}
}

// serve wires the functions to the listeners and starts the clock.
func (p *Platform) serve(ctx context.Context) error {
	for _, address := range p.users {
		if _, err := p.pool.AddUser(address, "", true); err != nil {
			return err
		}
	}
	if err := p.writeRuntimeEnv(); err != nil {
		return err
	}
	hub := realtime.NewHub()
	kept, err := letters.Open(letters.Config{Dir: filepath.Join(p.config.Dir, "dead-letters"), Prefix: functionPrefix})
	if err != nil {
		return err
	}
	p.queue = newQueue()
	p.queue.letters, p.queue.retryAfter = kept, p.config.RetryAfter
	functions, err := p.functions(hub)
	if err != nil {
		return err
	}
	p.queue.serve(p.callers(), functions)
	p.Outputs = Outputs{
		Region: region, APIURL: p.plain.url("http"), WebAppURL: p.plain.url("http") + "/",
		AppSyncURL: p.tls.url("https"), RealtimeURL: p.tls.url("wss"), UserPoolID: p.pool.ID(), ClientID: p.pool.ClientID(), CAFile: p.Outputs.CAFile,
		S3Endpoint: p.objects.Endpoint(), S3AccessKeyID: "reader", S3SecretAccessKey: p.secrets.get("S3_READER_SECRET"),
		AnchorBucket: anchorBucket, ExportsBucket: exportsBucket, DatabaseReaderURL: p.database.readerURL,
		AnchorPublicKey: p.Outputs.AnchorPublicKey, AnchorOrigin: anchorOrigin,
		DeadLetters: kept.Dir(),
	}
	if err := p.mount(hub); err != nil {
		return err
	}
	if server := p.database.server; server != nil {
		p.watching.Go(func() {
			select {
			case <-server.Done():
				p.failed <- errors.New("PostgreSQL has ended; its log is postgres/postgres.log in the data directory")
			case <-p.stopping:
			}
		})
	}
	p.runEngines()
	return p.queue.schedule(map[string]time.Duration{"publish-anchor": p.config.AnchorInterval})
}

// Operators are the platform operators.
func (p *Platform) Operators() tenant.Operators { return tenant.ParseOperators(p.config.Operators) }

// Failed reports the end of a part that should not have ended.
func (p *Platform) Failed() <-chan error { return p.failed }

// Stop ends everything, in the order in which things depend on one another. Turns that run go on at the next start.
func (p *Platform) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	close(p.stopping)
	p.watching.Wait()
	var errs []error
	if p.sockets != nil {
		errs = append(errs, p.sockets.Close(ctx))
	}
	for _, l := range []*listener{p.plain, p.tls} {
		if l != nil {
			errs = append(errs, l.close(ctx))
		}
	}
	if p.stopEngines != nil {
		p.stopEngines()
		p.engines.Wait()
	}
	if p.queue != nil {
		p.queue.close()
	}
	if p.host != nil {
		p.host.Stop()
	}
	if p.aws != nil {
		errs = append(errs, p.aws.close(ctx))
	}
	if p.model != nil {
		errs = append(errs, p.model.close())
	}
	if p.pool != nil {
		errs = append(errs, p.pool.Close())
	}
	if p.objects != nil {
		errs = append(errs, p.objects.Stop(ctx))
	}
	p.closeEngines()
	if p.database != nil {
		errs = append(errs, p.database.close(ctx))
	}
	if p.claim != nil {
		errs = append(errs, p.claim.Close())
	}
	return errors.Join(errs...)
}

// listen takes both ports before anything is made, so that a port in use leaves no trace.
func (p *Platform) listen() (err error) {
	if p.plain, err = newListener(p.config.Port, "PORT"); err != nil {
		return err
	}
	p.tls, err = newListener(p.config.TLSPort, "TLS_PORT")
	return err
}
