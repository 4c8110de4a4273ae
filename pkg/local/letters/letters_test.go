package letters_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/deadletter"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/letters"
)

func open(t *testing.T, c letters.Config) *letters.Box {
	t.Helper()
	c.Prefix = "test-"
	box, err := letters.Open(c)
	require.NoError(t, err)
	return box
}

func record(payload string) deadletter.Record {
	return deadletter.Exhausted("r", "arn:aws:lambda:us-east-1:000000000000:function:test-one", json.RawMessage(payload), json.RawMessage(`{"errorType":"T"}`), 3, time.Now())
}

func put(t *testing.T, box *letters.Box, payload string) (id string) {
	t.Helper()
	id, err := box.Put(record(payload))
	require.NoError(t, err)
	return id
}

func receive(t *testing.T, box *letters.Box) (payloads []string) {
	t.Helper()
	got, err := box.Receive(t.Context(), 100, time.Minute)
	require.NoError(t, err)
	for _, l := range got {
		payloads = append(payloads, string(l.Payload))
	}
	return payloads
}

// A letter is a file for its owner only, and its payload stays as it is, to the byte.
func TestPut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dead-letters")
	box := open(t, letters.Config{Dir: dir})
	const payload = `{"text":"Grüße <b> & \u2028"}`
	id := put(t, box, payload)
	require.True(t, ident.Valid(id))
	info, err := os.Stat(filepath.Join(dir, id+".json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	got, err := box.Receive(t.Context(), 1, time.Minute)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, id, got[0].ID)
	require.Equal(t, "one", got[0].Function)
	require.Equal(t, payload, string(got[0].Payload))
}

// A second start finds the letters, in nobody's hands, and removes what a killed process had not written to its end.
func TestASecondStart(t *testing.T) {
	dir := t.TempDir()
	box := open(t, letters.Config{Dir: dir})
	put(t, box, `1`)
	require.Equal(t, []string{"1"}, receive(t, box))
	require.Empty(t, receive(t, box))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".new-1"), []byte(`{"vers`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))

	box = open(t, letters.Config{Dir: dir})
	require.Equal(t, []string{"1"}, receive(t, box))
	require.NoFileExists(t, filepath.Join(dir, ".new-1"))
	require.FileExists(t, filepath.Join(dir, "notes.txt"))
}

// Letters go after deadletter.Kept, and the oldest go when there are too many.
func TestTheFolderIsBounded(t *testing.T) {
	dir := t.TempDir()
	box := open(t, letters.Config{Dir: dir, Most: 3})
	old := put(t, box, `0`)
	almost := time.Now().Add(-deadletter.Kept)
	require.NoError(t, os.Chtimes(filepath.Join(dir, old+".json"), almost, almost))
	young := put(t, box, `1`)
	almost = almost.Add(time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, young+".json"), almost, almost))
	require.Equal(t, []string{"1"}, receive(t, box))
	require.NoFileExists(t, filepath.Join(dir, old+".json"))
	for _, payload := range []string{`2`, `3`, `4`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "z"+payload+".json"), nil, 0o600)) // by hand, younger by name
		put(t, box, payload)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
}

// What a person does in the folder is seen.
func TestFilesByHand(t *testing.T) {
	dir := t.TempDir()
	box := open(t, letters.Config{Dir: dir})
	id := put(t, box, `1`)
	require.NoError(t, os.Remove(filepath.Join(dir, id+".json")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.json"), []byte("words"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.json"), 0o700))
	got, err := box.Receive(t.Context(), 10, time.Minute)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "mine", got[0].ID)
	require.Equal(t, "words", got[0].Body)
	require.NoError(t, os.Remove(filepath.Join(dir, "mine.json")))
	require.NoError(t, box.Delete(t.Context(), got[0]), "it is gone")

	// A letter that cannot be read keeps nobody from the others.
	put(t, box, `2`)
	require.NoError(t, os.Symlink(filepath.Join(dir, "folder.json"), filepath.Join(dir, "0.json")))
	got, err = box.Receive(t.Context(), 10, time.Minute)
	require.ErrorContains(t, err, "0.json")
	require.Len(t, got, 1)
}

// An id is never a path to elsewhere.
func TestAnIDIsAFileOfTheFolder(t *testing.T) {
	parent := t.TempDir()
	other := filepath.Join(parent, "other.json")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	box := open(t, letters.Config{Dir: filepath.Join(parent, "dead-letters")})
	_ = box.Delete(t.Context(), deadletter.Letter{ID: "../other", Until: time.Now().Add(time.Hour)})
	require.FileExists(t, other)
}

func TestAFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := letters.Open(letters.Config{Dir: file})
	require.Error(t, err)
	dir := filepath.Join(t.TempDir(), "dir")
	box := open(t, letters.Config{Dir: dir})
	require.NoError(t, os.RemoveAll(dir))
	require.Empty(t, receive(t, box), "somebody has removed all")
	put(t, box, `1`)
	require.Equal(t, []string{"1"}, receive(t, box))
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	_, err = box.Put(record(`1`))
	require.ErrorContains(t, err, "dead letters: ")
	_, err = box.Receive(t.Context(), 1, time.Minute)
	require.True(t, strings.HasPrefix(err.Error(), "dead letters: "))
}
