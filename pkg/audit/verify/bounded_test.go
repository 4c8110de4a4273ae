package verify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// A size that is only listed takes no memory; bytes that come do.
func TestBuffersGrowWithWhatComes(t *testing.T) {
	b := &buffers{}
	text, err := b.fill(strings.NewReader("short"), maxAnchor)
	require.NoError(t, err)
	require.Equal(t, "short", string(text))
	require.LessOrEqual(t, cap(text), 2*large)

	long := bytes.Repeat([]byte("0123456789abcdef"), (3*large+16)/16)
	for _, n := range []int{0, 1, large - 1, large, large + 1, 2*large + 5, len(long), len(long) + 1} {
		text, err := b.fill(bytes.NewReader(long), n)
		require.NoError(t, err)
		require.True(t, bytes.Equal(long[:min(n, len(long))], text), n)
		b.put(text)
	}
	_, err = b.fill(io.MultiReader(strings.NewReader("x"), broken{}), 2*large)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Logs of many tenants are listed ahead, but not all of them; in the tenants' order; and to the end of what is wanted.
func TestLogsAreListedAhead(t *testing.T) {
	const tenants, pages, page = 24, 5, 1000
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		prefix, after := r.URL.Query().Get("prefix"), r.URL.Query().Get("key-marker")
		_, n, _ := anchor.ParseEventsKey(after)
		id := strings.Trim(strings.TrimPrefix(prefix, anchor.EventPrefix), "/")
		fmt.Fprint(w, "<R>")
		last := min(n+page, pages*page)
		for n++; n <= last; n++ {
			fmt.Fprintf(w, `<Version><Key>%s</Key><VersionId>v</VersionId><Size>1</Size><IsLatest>true</IsLatest><LastModified>2026-01-01T00:00:00Z</LastModified></Version>`, anchor.EventsKey(id, n))
		}
		fmt.Fprintf(w, `<IsTruncated>%v</IsTruncated><NextKeyMarker>%s</NextKeyMarker><NextVersionIdMarker>v</NextVersionIdMarker></R>`, last < pages*page, anchor.EventsKey(id, last))
	}))
	defer server.Close()
	h := &history{lo: 1, hi: pages * page}
	for range tenants {
		id, _ := parseUUID(ident.New())
		h.tenants = append(h.tenants, tenant{id: id, now: entry{length: 2}, base: entry{length: 1}})
	}
	slices.SortFunc(h.tenants, func(a, b tenant) int { return bytes.Compare(a.id[:], b.id[:]) })
	r := &run{cfg: Config{Bucket: object.New(object.Config{Region: "us-east-1", Endpoint: server.URL, AccessKey: "k", Secret: "s", PathStyle: true}).In("b"), Fetches: 4, Patience: time.Minute},
		found: &collector{limit: 10}, tally: &tally{}, buffers: &buffers{}}
	l := &logs{run: r, h: h}

	var keys []string
	for s, err := range l.list(t.Context()) {
		require.NoError(t, err)
		if len(keys) == 0 {
			require.LessOrEqual(t, requests.Load(), int64(3*(r.cfg.Fetches+2)), "for each tenant that is listed ahead, its page, the next, and one more")
		}
		keys = append(keys, s.key)
	}
	require.Len(t, keys, tenants*(pages*page-1))
	require.True(t, slices.IsSorted(keys))
	require.True(t, r.found.clean())

	for _, err := range l.list(t.Context()) {
		require.NoError(t, err)
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	count, failed := 0, error(nil)
	for _, err := range l.list(ctx) {
		if count++; count == 10 {
			cancel()
		}
		failed = err
	}
	require.ErrorIs(t, failed, context.Canceled)
	server.Close()
	failed = nil
	for _, err := range l.list(t.Context()) {
		failed = err
	}
	require.Error(t, failed)
}

// Which anchor covers a cadence is looked up, however many are missing.
func TestCovering(t *testing.T) {
	h := &history{lo: 3, hi: 8, cadences: make([]cadence, 5)}
	h.cadences[1].usable, h.cadences[3].usable = true, true // 5 and 7
	h.cover()
	for n, want := range map[uint64]uint64{0: 5, 3: 5, 4: 5, 5: 5, 6: 7, 7: 7, 8: 0, 9: 0, 1 << 62: 0} {
		require.Equal(t, want, h.covering(n), n)
	}
	require.Zero(t, (&history{}).covering(1))
}
