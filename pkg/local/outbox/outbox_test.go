package outbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/push"
)

func opened(t *testing.T, dir string, keep int) *Outbox {
	t.Helper()
	o, err := Open(Config{Dir: dir, Keep: keep})
	require.NoError(t, err)
	return o
}

func send(t *testing.T, o *Outbox, subject string) {
	t.Helper()
	_, err := mail.New(o).Send(t.Context(), mail.Message{From: mail.Address{Address: "ada@agents.example.com"}, To: []string{"ann@acme.test"}, Subject: subject, Text: "Hello"})
	require.NoError(t, err)
}

func notify(t *testing.T, o *Outbox, n push.Notification) (endpoint string) {
	t.Helper()
	p := push.New(o)
	endpoint, err := p.Register(t.Context(), push.FCM, "token", "user-1")
	require.NoError(t, err)
	require.NoError(t, p.Send(t.Context(), endpoint, n))
	return endpoint
}

func subjects(t *testing.T, o *Outbox) (all []string) {
	t.Helper()
	for before, more := "", true; more; {
		var page []Entry
		var err error
		page, more, err = o.List(before, 3)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 3)
		require.True(t, !more || len(page) == 3)
		for _, e := range page {
			require.True(t, before == "" || e.ID < before)
			all, before = append(all, e.Subject), e.ID
		}
	}
	return all
}

func TestNewestFirstPageByPage(t *testing.T) {
	o := opened(t, t.TempDir(), 0)
	require.Empty(t, subjects(t, o))
	send(t, o, "first")
	endpoint := notify(t, o, push.Notification{Title: "a push"})
	for i := range 6 {
		send(t, o, fmt.Sprint("Grüße ", i))
	}
	want := []string{"Grüße 5", "Grüße 4", "Grüße 3", "Grüße 2", "Grüße 1", "Grüße 0", "a push", "first"}
	require.Equal(t, want, subjects(t, o))
	require.Equal(t, want, subjects(t, opened(t, o.dir, 0)), "also after a restart")

	all, more, err := o.List("", MaxPage)
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, []any{Mail, "ann@acme.test"}, []any{all[0].Kind, all[0].To})
	require.Equal(t, []any{Push, endpoint}, []any{all[6].Kind, all[6].To})
	require.WithinDuration(t, time.Now(), all[0].At, time.Hour)

	raw, err := o.Read(all[0].ID)
	require.NoError(t, err)
	require.Contains(t, string(raw), "\r\nTo: ann@acme.test\r\n")
	raw, err = o.Read(all[6].ID)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"title": "a push"`)
	for _, id := range []string{"", "none", "..", "../secrets.env", "20060102T150405.000000Z", all[0].ID + ".eml"} {
		_, err := o.Read(id)
		require.ErrorIs(t, err, fs.ErrNotExist, id)
	}
}

func TestTheOldestGo(t *testing.T) {
	dir := t.TempDir()
	o := opened(t, dir, 4)
	for i := range 9 {
		send(t, o, fmt.Sprint(i))
	}
	require.Equal(t, []string{"8", "7", "6", "5"}, subjects(t, o))
	o = opened(t, dir, 2)
	require.Equal(t, []string{"8", "7"}, subjects(t, o))
	found, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	require.NoError(t, err)
	require.Len(t, found, 2)
}

// A process that dies leaves a file whole or unready; a start removes what is unready, and nothing that is not the outbox's.
func TestAfterADeath(t *testing.T) {
	dir := t.TempDir()
	o := opened(t, dir, 0)
	send(t, o, "whole")
	endpoint := notify(t, o, push.Notification{Title: "a push"})
	for name, content := range map[string]string{atomicfile.Unfinished + "1": "From: a", "devices/" + atomicfile.Unfinished + "2": "{", "notes.txt": "mine", "99999999T999999.999999Z.txt": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o600))
	}
	o = opened(t, dir, 0)
	require.Equal(t, []string{"a push", "whole"}, subjects(t, o))
	require.NoFileExists(t, filepath.Join(dir, atomicfile.Unfinished+"1"))
	require.NoFileExists(t, filepath.Join(dir, devices, atomicfile.Unfinished+"2"))
	require.FileExists(t, filepath.Join(dir, "notes.txt"))
	require.NoError(t, push.New(o).Send(t.Context(), endpoint, push.Notification{Title: "again"}), "devices stay")

	info, err := os.Stat(filepath.Join(dir, o.names[0]))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
}

func TestIDsGrowWhateverTheClockDoes(t *testing.T) {
	o := opened(t, t.TempDir(), 0)
	future := time.Now().AddDate(1, 0, 0).UTC()
	require.NoError(t, os.WriteFile(filepath.Join(o.dir, future.Format(idForm)+".eml"), []byte("Subject: from the future\r\n\r\n"), 0o600))
	o = opened(t, o.dir, 0)
	send(t, o, "after it")
	send(t, o, "after that")
	require.Equal(t, []string{"after that", "after it", "from the future"}, subjects(t, o))
}

func TestByManyAtOnce(t *testing.T) {
	o := opened(t, t.TempDir(), 20)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if _, err := o.Carry(t.Context(), mail.Envelope{ID: "<1@x>", Raw: []byte("Subject: s\r\n\r\n")}); err != nil {
					t.Error(err)
				}
				if _, _, err := o.List("", 10); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, strings.Fields(strings.Repeat("s ", 20)), subjects(t, o))
}

func TestWhatSomebodyHasDamagedIsShownAllTheSame(t *testing.T) {
	o := opened(t, t.TempDir(), 0)
	send(t, o, "a")
	notify(t, o, push.Notification{Title: "b"})
	for _, name := range o.names {
		require.NoError(t, os.WriteFile(filepath.Join(o.dir, name), []byte("\xff garbage"), 0o600))
	}
	require.Equal(t, []string{"", ""}, subjects(t, o))
	require.NoError(t, os.Remove(filepath.Join(o.dir, o.names[0])))
	require.Equal(t, []string{""}, subjects(t, o))
}
