package outbox_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

const patience = time.Minute // what a test waits for happens at once, or never

// A transaction draws its position when it holds its tenant's lock, not before: of two transactions the one that is first to record commits
// first. Other tenants do not wait.
func TestAPositionIsDrawnUnderTheTenantsLock(t *testing.T) {
	w := newWorld(t)
	first, goOn := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	errs := make([]error, 2)
	done.Go(func() {
		errs[0] = w.InTenant(t.Context(), w.App, w.acme, func(tx pgx.Tx) error {
			defer close(first)
			if err := w.Record(t.Context(), tx, w.event(w.acme)); err != nil {
				return err
			}
			first <- struct{}{}
			<-goOn
			return nil
		})
	})
	<-first
	done.Go(func() { errs[1] = w.record(t.Context(), w.acme, w.event(w.acme)) })
	super := w.Superuser(t)
	require.Eventually(t, func() bool {
		var waiting int
		err := super.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'advisory' and not granted`).Scan(&waiting)
		return err == nil && waiting == 1
	}, patience, time.Millisecond, "the second waits for the first")
	require.NoError(t, w.record(t.Context(), w.globex, w.event(w.globex)))
	close(goOn)
	done.Wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	rows := w.rows(t)
	require.Len(t, rows, 3)
	require.Equal(t, []string{w.acme, w.globex, w.acme}, []string{rows[0].TenantID, rows[1].TenantID, rows[2].TenantID})
	require.Equal(t, []int64{1, 2, 3}, []int64{rows[0].Position, rows[1].Position, rows[2].Position}, "none was drawn by the one that waited")
}

// Whoever has seen a tenant's row never sees one with a lower position appear later: what the drainer relies on.
func TestPositionsAppearInOrder(t *testing.T) {
	const writers, each = 6, 25
	w := newWorld(t)
	start := make(chan struct{})
	var writing sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		writing.Go(func() {
			<-start
			for range each {
				tenantID := []string{w.acme, w.globex}[i%2]
				if errs[i] = w.record(t.Context(), tenantID, w.event(tenantID)); errs[i] != nil {
					return
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	ledger := w.Connect(t, w.LedgerURL)
	seen, newest := map[int64]bool{}, map[string]int64{}
	look := func() {
		rows, err := ledger.Query(t.Context(), `select position, tenant_id::text from audit_outbox where state = 'pending' order by position`)
		require.NoError(t, err)
		var position int64
		var tenantID string
		appeared := map[string]int64{}
		_, err = pgx.ForEachRow(rows, []any{&position, &tenantID}, func() error {
			if !seen[position] {
				require.Greater(t, position, newest[tenantID], "a row appeared behind one that was seen before")
				seen[position], appeared[tenantID] = true, position
			}
			return nil
		})
		require.NoError(t, err)
		for tenantID, position := range appeared {
			newest[tenantID] = position
		}
	}
	close(start)
	for running := true; running; look() {
		select {
		case <-written:
			running = false
		default:
		}
	}
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, seen, writers*each)
	require.EqualValues(t, writers*each, w.woken.Load())
}

func TestAmongConcurrentCallsOneRecords(t *testing.T) {
	const callers = 8
	w := newWorld(t)
	for name, c := range map[string]struct {
		tenants, bodies []string
		refused         bool // whoever comes later
	}{
		"the same":       {[]string{w.acme, w.acme}, []string{"a", "a"}, false},
		"other bodies":   {[]string{w.acme, w.acme}, []string{"a", "b"}, true},
		"two tenants":    {[]string{w.acme, w.globex}, []string{"a", "a"}, true},
		"and two bodies": {[]string{w.acme, w.globex}, []string{"a", "b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := w.event("")
			e.EventID = ident.New()
			type outcome struct {
				side     int
				receipt  string
				repeated bool
				err      error
			}
			outcomes := make([]outcome, callers)
			start := make(chan struct{})
			var calling sync.WaitGroup
			for i := range callers {
				calling.Go(func() {
					side := i % 2
					o, e, hash := &outcomes[i], e, sha256.Sum256([]byte(c.bodies[side]))
					o.side, e.TenantID, e.RequestID = side, c.tenants[side], fmt.Sprint(i)
					<-start
					o.err = w.InTenant(context.WithoutCancel(t.Context()), w.App, e.TenantID, func(tx pgx.Tx) (err error) {
						o.receipt, o.repeated, err = w.RecordOnce(t.Context(), tx, e, hash[:])
						return err
					})
				})
			}
			close(start)
			calling.Wait()
			var first *outcome
			for i := range outcomes {
				if o := &outcomes[i]; o.err == nil && !o.repeated {
					require.Nil(t, first, "two recorded")
					first = o
				}
			}
			require.NotNil(t, first)
			for _, o := range outcomes {
				if c.refused && o.side != first.side {
					require.Equal(t, 409, fault.From(o.err).Status(), "%v", o.err)
				} else {
					require.NoError(t, o.err)
					require.Equal(t, first.receipt, o.receipt)
				}
			}
		})
	}
	require.Len(t, w.rows(t), 4)
}
