package secret_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// place is a Store under the contract.
type place struct {
	store secret.Store
	again secret.Store // another Store of the same place
	// plant puts value where the secret's is, as the store does not.
	plant func(t *testing.T, id secret.ID, value string)
}

// marker is in the values of calls that fail, and so must be in no error.
const marker = "s3cr3t-v4lu3"

func testContract(t *testing.T, p place) {
	// fresh is an id where nothing is.
	fresh := func() secret.ID { return of(t, ident.New(), "connections", ident.New()) }
	put := func(t *testing.T, id secret.ID, value string) {
		t.Helper()
		require.NoError(t, p.store.Put(t.Context(), id, value))
	}
	holds := func(t *testing.T, id secret.ID, value string) {
		t.Helper()
		got, err := p.again.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, value, got)
	}
	refused := func(t *testing.T, id secret.ID, why, err error) {
		t.Helper()
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, "secret "+id.String()+": ")
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), marker)
	}
	missing := func(t *testing.T, id secret.ID) {
		t.Helper()
		got, err := p.again.Get(t.Context(), id)
		refused(t, id, secret.ErrMissing, err)
		require.Empty(t, got)
	}

	t.Run("put, replaced, deleted", func(t *testing.T) {
		id := fresh()
		missing(t, id)
		put(t, id, "one")
		holds(t, id, "one")
		put(t, id, "one")
		put(t, id, "two")
		holds(t, id, "two")
		require.NoError(t, p.again.Delete(t.Context(), id))
		missing(t, id)
		require.NoError(t, p.store.Delete(t.Context(), id), "again")
		require.NoError(t, p.store.Delete(t.Context(), fresh()), "never there")
		put(t, id, "three")
		holds(t, id, "three")
	})
	t.Run("any text", func(t *testing.T) {
		id := fresh()
		for _, value := range []string{
			"x", " ", "\n", "  spaces around  ", "lines\nof\r\ntext\n\n", "tab\tbell\aescape\x1b", "ключ 鍵 🔑 e\u0301", `{"a":{"b":"c"}}`, "\ufeffmark", "\\", "<&>\"'",
			"{{", "{{{", "{{ssm:other}}", "{{\n}}", `{\`, `{\{`, `{{\`, `\{{\}}`, `{\\{{`, "https://example.com/", "file:///etc/passwd", "kms:", "null", "=", "\u2028",
		} {
			put(t, id, value)
			holds(t, id, value)
		}
		for _, value := range []string{"\xff", "a\xc3", marker + "\x00", "\xed\xa0\x80"} {
			refused(t, id, secret.ErrNotText, p.store.Put(t.Context(), id, value))
		}
		holds(t, id, "\u2028")
	})
	t.Run("sizes", func(t *testing.T) {
		id := fresh()
		for _, value := range []string{
			strings.Repeat("a", 4096), strings.Repeat("a", 4097), strings.Repeat("a", 8192), strings.Repeat("é", 4096), strings.Repeat("🔑", 2048), "a",
			strings.Repeat("{", 4096), strings.Repeat("{", 4095) + `\\`, strings.Repeat(`{\`, 2730) + "aa", // each { counts twice
		} {
			put(t, id, value)
			holds(t, id, value)
		}
		put(t, id, "before")
		for _, value := range []string{
			"", marker + strings.Repeat("a", 8193-len(marker)), strings.Repeat("é", 4096) + "a", strings.Repeat("{", 4096) + "a", strings.Repeat(marker, 100_000),
		} {
			refused(t, id, secret.ErrSize, p.store.Put(t.Context(), id, value))
			holds(t, id, "before")
		}
	})
	t.Run("ids", func(t *testing.T) {
		one, other := ident.New(), ident.New()
		ids := []secret.ID{of(t, one, "a"), of(t, one, "a", "b"), of(t, one, "a-b"), of(t, one, "a_b"), of(t, one, "a", "b", "c"), of(t, one, "ab"),
			of(t, other, "a"), of(t, other, "a", "b"), of(t, one, other, "a"), of(t, one, strings.Repeat("a", secret.MaxID-37)), of(t, one, strings.Split("a/b/c/d/e/f/g/h", "/")...)}
		for i, id := range ids {
			put(t, id, fmt.Sprint("of ", i))
		}
		for i, id := range ids {
			holds(t, id, fmt.Sprint("of ", i))
			require.NoError(t, p.store.Delete(t.Context(), id))
			missing(t, id)
		}
		var none secret.ID
		require.ErrorIs(t, p.store.Put(t.Context(), none, marker), secret.ErrNoID)
		require.ErrorIs(t, p.store.Delete(t.Context(), none), secret.ErrNoID)
		_, err := p.store.Get(t.Context(), none)
		require.ErrorIs(t, err, secret.ErrNoID)
	})
	t.Run("a cancelled call", func(t *testing.T) {
		id := fresh()
		put(t, id, "before")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		refused(t, id, context.Canceled, p.store.Put(ctx, id, marker))
		refused(t, id, context.Canceled, p.store.Delete(ctx, id))
		_, err := p.store.Get(ctx, id)
		refused(t, id, context.Canceled, err)
		holds(t, id, "before")
	})
	t.Run("what the store did not put", func(t *testing.T) {
		id := fresh()
		p.plant(t, id, marker)
		got, err := p.store.Get(t.Context(), id)
		refused(t, id, secret.ErrForeign, err)
		require.Empty(t, got)
		require.NoError(t, p.store.Delete(t.Context(), id))
		missing(t, id)
		put(t, id, "ours")
		holds(t, id, "ours")
	})
	t.Run("replaced under readers", func(t *testing.T) {
		id, values := fresh(), [2]string{strings.Repeat("a", 8192), strings.Repeat("b", 5000)}
		put(t, id, values[0])
		var done atomic.Bool
		var wg sync.WaitGroup
		broken := make(chan string, 4)
		for range cap(broken) {
			wg.Go(func() {
				for !done.Load() {
					got, err := p.again.Get(t.Context(), id)
					if err != nil || got != values[0] && got != values[1] {
						broken <- fmt.Sprintf("%d bytes, %v", len(got), err)
						return
					}
				}
			})
		}
		for i := range 40 {
			put(t, id, values[i%2])
		}
		done.Store(true)
		wg.Wait()
		select {
		case what := <-broken:
			t.Fatal("a reader saw " + what)
		default:
		}
	})
	t.Run("put by many at once", func(t *testing.T) {
		const callers = 64
		id, values, errs := fresh(), map[string]bool{}, make([]error, callers)
		var wg sync.WaitGroup
		for i := range callers {
			value := strings.Repeat(fmt.Sprintf("%02d", i), 2000+i)
			values[value] = true
			wg.Go(func() { errs[i] = p.store.Put(t.Context(), id, value) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		got, err := p.again.Get(t.Context(), id)
		require.NoError(t, err)
		require.True(t, values[got], "one of them, whole")
	})
	t.Run("put and deleted by many at once", func(t *testing.T) {
		id, errs := fresh(), make([]error, 32)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				if i%2 == 0 {
					errs[i] = p.store.Put(t.Context(), id, "value")
				} else {
					errs[i] = p.again.Delete(t.Context(), id)
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.NoError(t, p.store.Delete(t.Context(), id))
		missing(t, id)
	})
}

func of(t *testing.T, tenant string, words ...string) secret.ID {
	t.Helper()
	id, err := secret.Of(tenant, words...)
	require.NoError(t, err)
	return id
}
