package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/audit/proof"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/agentplatform/agentplatform/schema"
)

// What the log that is verified holds: in each cadence, a part of the tenants does all that is done, so that there are as many event logs as tenants.
const (
	logEvents   = 1_000_000
	logTenants  = 1_000
	logCadences = 4
	logActive   = logTenants / logCadences // tenants
	logOrigin   = "bench.test/audit"
	logKey      = "the emission key of the benchmarks"
)

// childOf names, in its environment, what a child process of the benchmark does.
const childOf = "VERIFY_BENCH_CHILD"

// TestChildOfTheBenchmark is not a test: it is what the child processes of the benchmarks run. One is the S3 server, of which a process can have only one; the
// other verifies, so that its memory is its own.
func TestChildOfTheBenchmark(t *testing.T) {
	var order struct {
		Bucket string // folder to serve
		Verify *verifyOrder
	}
	if text := os.Getenv(childOf); text == "" {
		return
	} else {
		require.NoError(t, json.Unmarshal([]byte(text), &order))
	}
	if order.Verify != nil {
		order.Verify.run(t)
		return
	}
	s, err := bucket.Start(t.Context(), bucket.Config{Dir: order.Bucket, RootKey: "root", RootSecret: "root", ReaderKey: "reader", ReaderSecret: "reader",
		Buckets: []bucket.Bucket{{Name: "audit", ObjectLock: true}}})
	require.NoError(t, err)
	fmt.Println(s.Endpoint())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark ends
	require.NoError(t, s.Stop(context.Background()))
}

func child(order any) *exec.Cmd {
	text, _ := json.Marshal(order)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestChildOfTheBenchmark$")
	cmd.Env = append(os.Environ(), childOf+"="+string(text))
	cmd.Stderr = os.Stderr
	return cmd
}

// verifyOrder is a verification in a process of its own.
type verifyOrder struct {
	Endpoint, Database, Key, State string
	Now                            time.Time
}

// verifyResult is what it prints.
type verifyResult struct {
	Seconds float64
	PeakMB  float64
	Report  verify.Report
}

func (o *verifyOrder) run(t *testing.T) {
	text, err := os.ReadFile(o.Key)
	require.NoError(t, err)
	key, err := anchor.ParseVerifier(text, logOrigin)
	require.NoError(t, err)
	var r verifyResult
	began := time.Now()
	r.Report, err = verify.Run(t.Context(), verify.Config{Bucket: storage(o.Endpoint, "reader"), Database: o.Database, Keys: []anchor.Verifier{key}, State: o.State,
		ClockTolerance: -1, Now: func() time.Time { return o.Now }})
	require.NoError(t, err)
	r.Seconds = time.Since(began).Seconds()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kB float64
	_, err = fmt.Sscan(peak, &kB)
	require.NoError(t, err)
	r.PeakMB = kB / 1024
	require.NoError(t, json.NewEncoder(os.Stdout).Encode(r))
}

func storage(endpoint, who string) *object.Bucket {
	return object.New(object.Config{Region: "us-east-1", Endpoint: endpoint, AccessKey: who, Secret: who, PathStyle: true}).In("audit")
}

// auditLog is a log of a million events, on a database with fsync on and an S3 server in a process of its own.
type auditLog struct {
	dir      string
	server   *embedded.Server
	serving  *exec.Cmd
	stdin    io.Closer
	endpoint string
	public   string // file
	signer   sign.Signer
	ledger   *ledger.Ledger
	writer   *postgres.DB
	now      time.Time
	tenants  []string
	heads    []chainHead
	root     *pgx.Conn
}

type chainHead struct {
	length int64
	hash   string
}

func (l *auditLog) url(role string) string {
	return l.server.URL("agentplatform_"+role, "bench", "log")
}

func (l *auditLog) build() (err error) {
	ctx := context.Background()
	if l.dir, err = os.MkdirTemp("", "bench-log"); err != nil {
		return err
	}
	if l.server, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(l.dir, "postgres"), Password: "bench", Durable: true, Settings: map[string]string{"max_wal_size": "4GB"}}); err != nil {
		return err
	}
	admin, err := pgx.Connect(ctx, l.server.URL(embedded.Superuser, "bench", embedded.Database))
	if err != nil {
		return err
	}
	defer admin.Close(ctx)
	if _, err = admin.Exec(ctx, "create database log"); err != nil {
		return err
	}
	if err = migrate.Up(ctx, l.server.URL(embedded.Superuser, "bench", "log"), schema.SQL); err != nil {
		return err
	}
	if err = migrate.SetPasswords(ctx, l.server.URL(embedded.Superuser, "bench", embedded.Database), map[string]string{"agentplatform_owner": "bench", "agentplatform_app": "bench",
		"agentplatform_ledger": "bench", "agentplatform_reader": "bench"}); err != nil {
		return err
	}
	if err = l.serve(); err != nil {
		return err
	}
	if l.signer, err = sign.File(filepath.Join(l.dir, "key.pem")); err != nil {
		return err
	}
	public, err := l.signer.Public(ctx)
	if err != nil {
		return err
	}
	text, err := sign.PublicPEM(public)
	if err != nil {
		return err
	}
	l.public = filepath.Join(l.dir, "key.pub.pem")
	if err = os.WriteFile(l.public, text, 0o600); err != nil {
		return err
	}
	if l.writer, err = postgres.Open(ctx, postgres.Config{URL: l.url("ledger")}); err != nil {
		return err
	}
	l.now = time.Now().Truncate(time.Microsecond).UTC()
	l.ledger = ledger.New(ledger.Config{DB: l.writer, Bucket: storage(l.endpoint, "root"), Signer: l.signer, Key: []byte(logKey), Origin: logOrigin, Now: func() time.Time { return l.now }})
	if l.root, err = pgx.Connect(ctx, l.server.URL(embedded.Superuser, "bench", "log")); err != nil {
		return err
	}
	for i := range logTenants {
		l.tenants = append(l.tenants, ident.New())
		l.heads = append(l.heads, chainHead{0, audit.Genesis})
		if _, err = l.root.Exec(ctx, "insert into tenants (id, slug, name) values ($1, $2, $2)", l.tenants[i], fmt.Sprintf("tenant-%d", i)); err != nil {
			return err
		}
	}
	slices.Sort(l.tenants)
	for range logCadences {
		if err := l.grow(ctx, logEvents/logCadences); err != nil {
			return err
		}
		l.now = l.now.Add(15 * time.Minute)
		if err := l.ledger.PublishAnchor(ctx); err != nil {
			return err
		}
	}
	_, err = l.root.Exec(ctx, "vacuum analyze")
	return err
}

// serve starts the S3 server.
func (l *auditLog) serve() error {
	l.serving = child(map[string]any{"Bucket": filepath.Join(l.dir, "bucket")})
	stdin, err := l.serving.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := l.serving.StdoutPipe()
	if err != nil {
		return err
	}
	l.stdin = stdin
	if err := l.serving.Start(); err != nil {
		return err
	}
	_, err = fmt.Fscanln(stdout, &l.endpoint)
	return err
}

// grow adds events to all chains, as a drainer leaves them, and has a beacon made.
func (l *auditLog) grow(ctx context.Context, events int) error {
	number := int64(0)
	if err := l.root.QueryRow(ctx, "select open_cadence from audit_ledger").Scan(&number); err != nil {
		return err
	}
	at := ident.Time{Time: l.now}
	random := rand.New(rand.NewPCG(1, uint64(number)))
	var chained, drained [][]any
	for i := range events {
		t := (int(number-1)%logCadences)*logActive + i%logActive
		head := &l.heads[t]
		e := audit.Event{EventID: ident.New(), TenantID: l.tenants[t], OccurredAt: at, Actor: ident.New(), ActorType: audit.ActorUser, Source: audit.SourceGraphQL, Type: audit.AgentCreated,
			ResourceType: "agent", ResourceID: ident.New(), RequestID: fmt.Sprintf("%016x", random.Uint64()), Payload: map[string]any{"agentId": ident.New(), "name": "Ada “the first”", "templateId": ident.New()}}
		env, err := e.Envelope()
		if err != nil {
			return err
		}
		env.RecordedAt = at
		text, err := env.Append(nil)
		if err != nil {
			return err
		}
		hash := audit.Hash(text, head.hash)
		chained = append(chained, []any{e.TenantID, head.length + 1, e.EventID, at.Time, at.Time, e.Actor, string(e.Type), hash, head.hash, number, string(text)})
		drained = append(drained, []any{e.TenantID, e.EventID, []byte{1}, []byte{1}, "drained", at.Time})
		*head = chainHead{head.length + 1, hash}
		if len(chained) == 50_000 || i == events-1 {
			if _, err := l.root.CopyFrom(ctx, pgx.Identifier{"audit_events"}, []string{"tenant_id", "chain_position", "event_id", "occurred_at", "recorded_at", "actor", "event_type", "event_hash",
				"prev_hash", "cadence", "canonical"}, pgx.CopyFromRows(chained)); err != nil {
				return err
			}
			if _, err := l.root.CopyFrom(ctx, pgx.Identifier{"audit_outbox"}, []string{"tenant_id", "event_id", "mac", "body_hash", "state", "drained_at"}, pgx.CopyFromRows(drained)); err != nil {
				return err
			}
			chained, drained = chained[:0], drained[:0]
		}
	}
	var batch pgx.Batch
	for i, head := range l.heads {
		if head.length > 0 {
			batch.Queue(`insert into audit_heads (tenant_id, length, event_hash, recorded_at) values ($1, $2, $3, $4) on conflict (tenant_id) do update set length = $2, event_hash = $3, recorded_at = $4`,
				l.tenants[i], head.length, head.hash, at.Time)
		}
	}
	if err := l.root.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	return l.ledger.Drain(ctx)
}

func (l *auditLog) verify(state string) (r verifyResult, err error) {
	out, err := child(map[string]any{"Verify": verifyOrder{Endpoint: l.endpoint, Database: l.url("reader"), Key: l.public, State: state, Now: l.now}}).Output()
	if err != nil {
		return r, fmt.Errorf("%w: %s", err, out)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	if err = json.Unmarshal([]byte(line), &r); err == nil && !r.Report.OK() {
		err = fmt.Errorf("not clean: %v", r.Report.Findings)
	}
	return r, err
}

func (l *auditLog) close() {
	ctx := context.Background()
	if l.root != nil {
		l.root.Close(ctx)
	}
	if l.writer != nil {
		l.writer.Close()
	}
	if l.stdin != nil {
		l.stdin.Close()
		_ = l.serving.Wait()
	}
	if l.server != nil {
		_ = l.server.Stop(ctx)
	}
	_ = os.RemoveAll(l.dir)
}

// bare is the floor: all rows through COPY on as many connections as there are processors, one SHA-256 over each text, and nothing compared.
func (l *auditLog) bare() (time.Duration, error) {
	const connections = 2
	began := time.Now()
	g, ctx := errgroup.WithContext(context.Background())
	for i := range connections {
		from, to := l.tenants[i*logTenants/connections], l.tenants[(i+1)*logTenants/connections-1]
		g.Go(func() error {
			conn, err := pgx.Connect(ctx, l.url("reader"))
			if err != nil {
				return err
			}
			defer conn.Close(ctx)
			_, err = conn.PgConn().CopyTo(ctx, hashing{}, fmt.Sprintf(`copy (select tenant_id, chain_position, event_id, occurred_at, recorded_at, actor, event_type, event_hash, prev_hash, cadence, canonical
				from audit_events where tenant_id >= '%s' and tenant_id <= '%s' order by tenant_id, chain_position) to stdout (format binary)`, from, to))
			return err
		})
	}
	err := g.Wait()
	return time.Since(began), err
}

type hashing struct{}

func (hashing) Write(p []byte) (int, error) {
	sum := sha256.Sum256(p)
	_ = sum
	return len(p), nil
}

// BenchmarkVerify makes a log of a million events of a thousand tenants; verifies it, with all checks, on all processors; builds and checks proofs of it; and, after a
// tenth more, verifies only what is new.
func BenchmarkVerify(b *testing.B) {
	l := &auditLog{}
	defer l.close()
	require.NoError(b, l.build())
	b.Run("full", l.benchFull)
	b.Run("proof", l.benchProof)
	b.Run("incremental", l.benchIncremental)
}

func (l *auditLog) benchFull(b *testing.B) {
	if b.N == 1 { // only to see how long it takes; what is measured takes seconds, whatever N is
		return
	}
	b.ReportMetric(0, "ns/op")
	var full, floor []float64
	peak := 0.0
	for range 3 {
		took, err := l.bare()
		require.NoError(b, err)
		floor = append(floor, logEvents/took.Seconds())
		r, err := l.verify("")
		require.NoError(b, err)
		require.EqualValues(b, logEvents, r.Report.Counts.Events)
		full = append(full, logEvents/r.Seconds)
		peak = max(peak, r.PeakMB)
	}
	slices.Sort(full)
	slices.Sort(floor)
	l.sync(b)
	b.ReportMetric(full[1], "events/s")
	b.ReportMetric(floor[1], "floor-events/s")
	b.ReportMetric(peak, "peak-MB")
}

// sync reports what one fdatasync costs on the log's disk, in the middle of 200.
func (l *auditLog) sync(b *testing.B) {
	file, err := os.Create(filepath.Join(l.dir, "sync"))
	require.NoError(b, err)
	defer file.Close()
	var took []time.Duration
	for range 200 {
		_, err := file.Write(make([]byte, 8<<10))
		require.NoError(b, err)
		began := time.Now()
		require.NoError(b, syscall.Fdatasync(int(file.Fd())))
		took = append(took, time.Since(began))
	}
	b.ReportMetric(percentile(took, 50)*1000, "fdatasync-µs")
}

func (l *auditLog) benchIncremental(b *testing.B) {
	if b.N == 1 {
		return
	}
	b.ReportMetric(0, "ns/op")
	state := filepath.Join(l.dir, "state.json")
	_, err := l.verify(state)
	require.NoError(b, err)
	const more = 100_000
	require.NoError(b, l.grow(b.Context(), more))
	l.now = l.now.Add(15 * time.Minute)
	require.NoError(b, l.ledger.PublishAnchor(b.Context()))
	r, err := l.verify(state)
	require.NoError(b, err)
	require.EqualValues(b, more, r.Report.Counts.Events)
	l.sync(b)
	b.ReportMetric(r.Seconds*1000, "ms/100k-new")
	b.ReportMetric(r.PeakMB, "peak-MB")
}

func (l *auditLog) benchProof(b *testing.B) {
	if b.N == 1 {
		return
	}
	reader, err := postgres.Open(b.Context(), postgres.Config{URL: l.url("reader")})
	require.NoError(b, err)
	defer reader.Close()
	a, err := proof.Load(b.Context(), reader, storage(l.endpoint, "reader"), logCadences) // each chain has a thousand events
	require.NoError(b, err)
	chain, err := a.Chain(b.Context(), reader, l.tenants[logTenants/2])
	require.NoError(b, err)
	type event struct {
		text []byte
		prev string
	}
	var events []event
	require.NoError(b, reader.Unbound(b.Context(), func(tx pgx.Tx) error {
		rows, err := tx.Query(b.Context(), `select canonical, prev_hash from audit_events where tenant_id = $1 and chain_position <= $2 order by chain_position`, l.tenants[logTenants/2], int64(chain.Length()))
		if err != nil {
			return err
		}
		var e event
		_, err = pgx.ForEachRow(rows, []any{&e.text, &e.prev}, func() error {
			events = append(events, event{slices.Clone(e.text), e.prev})
			return nil
		})
		return err
	}))
	text, err := os.ReadFile(l.public)
	require.NoError(b, err)
	key, err := anchor.ParseVerifier(text, logOrigin)
	require.NoError(b, err)
	checker := anchor.NewChecker([]anchor.Verifier{key})

	const proofs = 100_000
	size := 0
	began := time.Now()
	for i := range proofs {
		at := i % len(events)
		file, err := chain.Prove(uint64(at+1), events[at].text, events[at].prev)
		require.NoError(b, err)
		_, err = checker.Check(file)
		require.NoError(b, err)
		size = max(size, len(file)-len(events[at].text))
	}
	l.sync(b)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(proofs/time.Since(began).Seconds(), "proofs/s")
	b.ReportMetric(float64(size), "bytes-beside-event")

	// The floor: the hashes that building and checking cannot do without.
	began = time.Now()
	var h merkle.Hash
	for i := range proofs {
		sum := sha256.Sum256(append(events[i%len(events)].text, events[i%len(events)].prev...))
		h = sum
		for range 10 + 10 + 2 {
			h = merkle.NodeHash(h, sum)
		}
	}
	b.ReportMetric(proofs/time.Since(began).Seconds(), "floor-proofs/s")
	_ = hex.EncodeToString(h[:])
}
