package bench

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/agentplatform/agentplatform/schema"
)

// book is a ledger on the platform's own servers, with a database and a bucket that nobody else uses: the platform's drainer must not help.
type book struct {
	super  *pgxpool.Pool
	url    string // of the database, as the superuser
	config ledger.Config
	box    *outbox.Outbox
	app    *postgres.DB
}

var (
	books       atomic.Int64
	emissionKey = []byte("the emission key of the ledger's benchmarks")
)

func openBook(b *testing.B) *book {
	b.Helper()
	w := open(b)
	pool, err := w.superuser()
	must(b, err)
	defer pool.Close()
	name := fmt.Sprintf("bench_ledger_%d", books.Add(1))
	_, err = pool.Exec(context.Background(), `drop database if exists `+name)
	must(b, err)
	_, err = pool.Exec(context.Background(), `create database `+name)
	must(b, err)
	u, err := url.Parse(pool.Config().ConnString())
	must(b, err)
	u.Path = "/" + name
	k := &book{url: u.String()}
	must(b, migrate.Up(context.Background(), k.url, schema.SQL))
	k.super, err = pgxpool.New(context.Background(), k.url)
	must(b, err)
	b.Cleanup(k.super.Close)
	signer, err := sign.File(filepath.Join(w.dir, name+".pem"))
	must(b, err)
	k.app = k.as(b, "agentplatform_app")
	k.box = outbox.New(outbox.Config{Key: emissionKey})
	k.config = ledger.Config{DB: k.as(b, "agentplatform_ledger"), Bucket: w.writeOnce(b, strings.ReplaceAll(name, "_", "-")), Signer: signer, Key: emissionKey, Origin: "bench.test/audit"}
	return k
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// as is a pool whose sessions are those of the role, which row-level security binds.
func (k *book) as(b *testing.B, role string) *postgres.DB {
	b.Helper()
	u, err := url.Parse(k.url)
	must(b, err)
	q := u.Query()
	q.Set("role", role)
	u.RawQuery = q.Encode()
	db, err := postgres.Open(context.Background(), postgres.Config{URL: u.String(), MaxConns: 16})
	must(b, err)
	b.Cleanup(db.Close)
	return db
}

// writeOnce makes a bucket with object lock on the platform's S3 server.
func (w *world) writeOnce(b *testing.B, name string) *object.Bucket {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "secrets.env"))
	must(b, err)
	secret := ""
	for line := range strings.Lines(string(text)) {
		if s, ok := strings.CutPrefix(strings.TrimSpace(line), "S3_ROOT_SECRET="); ok {
			secret = s
		}
	}
	out := w.platform.Outputs
	client := s3.New(s3.Options{Region: out.Region, BaseEndpoint: &out.S3Endpoint, UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider("platform", secret, "")})
	_, err = client.CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: &name, ObjectLockEnabledForBucket: aws.Bool(true)})
	must(b, err)
	return object.New(object.Config{Region: out.Region, Endpoint: out.S3Endpoint, AccessKey: "platform", Secret: secret, PathStyle: true}).In(name)
}

// act is an event of some 500 bytes.
func act(tenantID string) audit.Event {
	return audit.Event{TenantID: tenantID, Actor: ident.New(), ActorType: audit.ActorUser, Source: audit.SourceGraphQL, Type: audit.AgentCreated, RequestID: "req-" + rand.Text(),
		Payload: map[string]any{"agentId": ident.New(), "name": "An agent", "templateId": ident.New()}}
}

func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = ident.New()
	}
	return all
}

// fill puts n recorded acts into a table that is as the outbox, by the fastest way there is, and gives the size of one.
func (k *book) fill(b *testing.B, table string, tenants []string, n int) (bytes float64) {
	b.Helper()
	rows := make([][]any, n)
	size := 0
	for i := range rows {
		e, err := act(tenants[i*7%len(tenants)]).Envelope()
		must(b, err)
		text, err := e.Append(nil)
		must(b, err)
		sum := sha256.Sum256(text)
		rows[i] = []any{e.TenantID, e.EventID, string(text), audit.MAC(emissionKey, text), sum[:]}
		size += len(text)
	}
	_, err := k.super.CopyFrom(context.Background(), pgx.Identifier{table}, []string{"tenant_id", "event_id", "envelope", "mac", "body_hash"}, pgx.CopyFromRows(rows))
	must(b, err)
	_, err = k.super.Exec(context.Background(), `analyze `+table)
	must(b, err)
	_, err = k.super.Exec(context.Background(), `checkpoint`)
	must(b, err)
	return float64(size) / float64(n)
}

// fdatasync is what one costs on the disk that the database is on, in the middle of 200.
func fdatasync(b *testing.B) {
	b.Helper()
	f, err := os.CreateTemp(shared.w.dir, "sync")
	must(b, err)
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	for range 200 {
		_, err := f.Write(make([]byte, 8<<10))
		must(b, err)
		began := time.Now()
		must(b, syscall.Fdatasync(int(f.Fd())))
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "fdatasync-µs")
}
