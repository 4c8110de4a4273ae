package export_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/export"
	"github.com/agentplatform/agentplatform/pkg/audit/trail/trailtest"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimJob) != "" {
		victim()
		os.Exit(0)
	}
	pgtest.Main(m)
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(minutes int) ident.Time {
	return ident.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}
}

// world is a database with chains, a bucket, a key and a runner.
type world struct {
	t            *testing.T
	db           *pgtest.DB
	log          *trailtest.Log
	acme, globex string
	bucket       *object.Bucket
	endpoint     string
	keyFile      string
	runner       *export.Runner
	again        []string // runs that were asked for
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server, err := bucket.Start(t.Context(), bucket.Config{Dir: t.TempDir(), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{{Name: "exports"}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	db := pgtest.New(t)
	w := &world{t: t, db: db, log: trailtest.New(t, db), acme: db.Tenant(t, "acme"), globex: db.Tenant(t, "globex"),
		endpoint: server.Endpoint(), keyFile: filepath.Join(t.TempDir(), "key.pem")}
	w.bucket = exportsAt(w.endpoint)
	key, err := sign.File(w.keyFile)
	require.NoError(t, err)
	w.runner = &export.Runner{DB: db.App, Reader: db.Open(t, db.ReaderURL), Bucket: w.bucket, Sign: key, Again: func(_ context.Context, id string) error {
		w.again = append(w.again, id)
		return nil
	}}
	return w
}

func exportsAt(endpoint string) *object.Bucket {
	return object.New(object.Config{Region: "us-east-1", Endpoint: endpoint, AccessKey: "root", Secret: "root-secret", PathStyle: true}).In("exports")
}

// big are n events of some 100 KB, of both tenants, within three hours from noon.
func (w *world) big(n int) {
	w.t.Helper()
	skills := make([]any, 25)
	for i := range skills {
		skills[i] = strings.Repeat("skill, \"quoted\" ", 256)
	}
	events := make([]audit.Event, n)
	for i := range events {
		events[i] = audit.Event{TenantID: []string{w.acme, w.globex}[i%2], OccurredAt: at(i * 7 % 180), Actor: fmt.Sprintf("=actor %d", i), ActorType: audit.ActorAgent,
			Type: audit.AgentSkillsChanged, Payload: map[string]any{"agentId": "x", "addedSkills": skills, "removedSkills": []any{}}}
	}
	w.log.Append(events...)
}

// queue makes a job over the day of noon, each by another operator.
func (w *world) queue(format export.Format, filter string) string {
	w.t.Helper()
	f, err := export.ParseFilter([]byte(`{"from":"2026-03-04T00:00:00Z","to":"2026-03-05T00:00:00Z"`+filter+`}`), ident.Now())
	require.NoError(w.t, err)
	var job export.Job
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), w.acme, func(tx pgx.Tx) error {
		job, err = export.Create(w.t.Context(), tx, w.acme, ident.New()+"@acme.test", format, f)
		return err
	}))
	return job.ID
}

func (w *world) job(id string) (job export.Job) {
	w.t.Helper()
	require.NoError(w.t, w.runner.Reader.Unbound(w.t.Context(), func(tx pgx.Tx) (err error) {
		job, err = export.Get(w.t.Context(), tx, id)
		return err
	}))
	return job
}

// file is a complete job's file; manifest and row are held to it.
func (w *world) file(id string) string {
	w.t.Helper()
	job := w.job(id)
	require.Equal(w.t, export.Complete, job.Status, job)
	key := export.Key(id, job.Format)
	text, err := w.bucket.Get(w.t.Context(), key, 1<<30)
	require.NoError(w.t, err)
	sum := sha256.Sum256(text)
	require.Equal(w.t, hex.EncodeToString(sum[:]), *job.SHA256)
	require.EqualValues(w.t, len(text), *job.Bytes)
	require.NotNil(w.t, job.StartedAt)
	require.NotNil(w.t, job.FinishedAt)
	require.Nil(w.t, job.Error)

	m := w.manifest(key)
	require.Equal(w.t, sum, m.SHA256)
	require.EqualValues(w.t, len(text), m.Bytes)
	require.EqualValues(w.t, *job.Rows, m.Rows)
	require.Equal(w.t, job.Filter, string(m.Filter))
	require.Equal(w.t, []string{id, key, string(job.Format)}, []string{m.JobID, m.Key, m.Format})
	return string(text)
}

func (w *world) manifest(key string) anchor.Manifest {
	w.t.Helper()
	sealed, err := w.bucket.Get(w.t.Context(), anchor.ManifestKey(key), 1<<20)
	require.NoError(w.t, err)
	public, err := w.runner.Sign.Public(w.t.Context())
	require.NoError(w.t, err)
	verifier, err := anchor.LogVerifier("test/audit", public)
	require.NoError(w.t, err)
	m, err := anchor.OpenManifest(sealed, []anchor.Verifier{verifier})
	require.NoError(w.t, err)
	_, err = anchor.OpenManifest(bytes.Replace(sealed, []byte(`"rows":`), []byte(`"rows":1`), 1), []anchor.Verifier{verifier})
	require.Error(w.t, err)
	return m
}

// expireLeases makes every running job look abandoned.
func (w *world) expireLeases() {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `update export_jobs set lease_until = now() - interval '1 second' where lease_until is not null`)
	require.NoError(w.t, err)
}

func (w *world) run(id string) {
	w.t.Helper()
	require.NoError(w.t, w.runner.Run(w.t.Context(), id))
}

func missing(err error) bool { return fault.From(err).Type == fault.NotFound }
