package object_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/object"
)

// keysAsTheyAre: whatever is in a key comes back from a listing, and goes on from there.
func keysAsTheyAre(t *testing.T, s storage) {
	keys := []string{"odd/%41", "odd/a b", "odd/a+b", "odd/a&b=c?#", "odd/ü%2F"}
	for _, key := range keys {
		put(t, s, locked, key, "one", object.PutOptions{})
		put(t, s, plain, key, "one", object.PutOptions{})
	}
	var found, all []string
	for v, err := range s.store.In(locked).Versions(t.Context(), "odd/", "") {
		require.NoError(t, err)
		found = append(found, v.Key)
	}
	for o, err := range s.store.In(plain).List(t.Context(), "odd/", "") {
		require.NoError(t, err)
		all = append(all, o.Key)
	}
	require.ElementsMatch(t, keys, found)
	require.Equal(t, found, all)
	for v, err := range s.store.In(locked).Versions(t.Context(), "odd/", found[2]) {
		require.NoError(t, err)
		require.Equal(t, found[3], v.Key)
		break
	}

	if s.limited { // moto does not encode versions
		return
	}
	// A key that XML cannot write ends no listing: the local server writes U+FFFD for what cannot be written.
	put(t, s, locked, "control/\x01\x1b[2J", "one", object.PutOptions{})
	require.Len(t, listed(t, s, "control/", ""), 1)
}

// s3Like answers listings as S3 does: with encoding-type=url, keys and markers are encoded, and a space is a plus; without, a control character is XML that cannot be
// read. It has a page for each key.
func s3Like(t *testing.T, keys ...string) *object.Bucket {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		spell, encoding := func(s string) string { return strings.NewReplacer("&", "&amp;", "\x01", "&#1;").Replace(s) }, ""
		if q.Get("encoding-type") == "url" {
			spell, encoding = url.QueryEscape, "<EncodingType>url</EncodingType>"
		}
		after := q.Get("key-marker")
		if q.Has("list-type") {
			token, err := hex.DecodeString(q.Get("continuation-token"))
			assert.NoError(t, err)
			after = string(token)
		}
		i := slices.IndexFunc(keys, func(key string) bool { return key > after })
		key, kind := keys[i], "Contents"
		if !q.Has("list-type") {
			kind = []string{"Version", "DeleteMarker"}[i%2]
		}
		fmt.Fprintf(w, `<Result><Prefix>%s</Prefix>%s<%s><Key>%s</Key><VersionId>v</VersionId><Size>3</Size><LastModified>2026-01-01T00:00:00Z</LastModified></%s>`,
			spell(q.Get("prefix")), encoding, kind, spell(key), kind)
		if i+1 < len(keys) {
			fmt.Fprintf(w, `<IsTruncated>true</IsTruncated><NextKeyMarker>%s</NextKeyMarker><NextVersionIdMarker>v</NextVersionIdMarker><NextContinuationToken>%x</NextContinuationToken>`, spell(key), key)
		}
		fmt.Fprint(w, `</Result>`)
	}))
	t.Cleanup(server.Close)
	return at(server.URL, false).store.In("b")
}

func TestListingsOfS3(t *testing.T) {
	keys := []string{"p/\x01\x1b[31m", "p/%41", "p/a b", "p/a&b", "p/a+b", "p/ü"}
	bucket := s3Like(t, keys...)
	var found, all []string
	for v, err := range bucket.Versions(t.Context(), "p/", "") {
		require.NoError(t, err)
		require.Equal(t, len(found)%2 == 1, v.DeleteMarker)
		found = append(found, v.Key)
	}
	require.Equal(t, keys, found)
	for o, err := range bucket.List(t.Context(), "p/", "") {
		require.NoError(t, err)
		all = append(all, o.Key)
	}
	require.Equal(t, keys, all)
}

// A listing that goes on from where it is would never end.
func TestAListingThatGoesNowhere(t *testing.T) {
	for name, more := range map[string]string{"no marker": "", "the same one": "<NextKeyMarker>k</NextKeyMarker>", "not URL encoding": "<EncodingType>url</EncodingType><NextKeyMarker>%x</NextKeyMarker>"} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `<Result><IsTruncated>true</IsTruncated>%s</Result>`, more)
			}))
			defer server.Close()
			var err error
			for _, err = range at(server.URL, false).store.In("b").Versions(t.Context(), "p/", "") {
			}
			require.Error(t, err)
		})
	}
}

// Get compares the storage's checksum; an Open does not ask for it, for its readers hash every byte anyway.
func TestChecksumsOfWhatIsRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("x-amz-checksum-mode") != "" {
			w.Header().Set("x-amz-checksum-crc32", "AAAAAA==")
		}
		fmt.Fprint(w, "text")
	}))
	defer server.Close()
	bucket := at(server.URL, false).store.In("b")
	_, err := bucket.Get(t.Context(), "k", 10)
	require.ErrorContains(t, err, "checksum")
	body, _, err := bucket.Open(t.Context(), "k", "")
	require.NoError(t, err)
	defer body.Close()
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
}
