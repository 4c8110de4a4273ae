package space_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/space"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/space"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

func write(t *testing.T, p *handlertest.Platform, by tenant.Claims, input args) (space.GovernanceFile, *fault.Error) {
	t.Helper()
	return handlertest.Call[space.GovernanceFile](t, p, "update-governance-file", functions.UpdateGovernanceFile, by, args{"input": input})
}

func TestGovernanceFilesAreRecorded(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	admin := handlertest.Claims(w, tenant.Admin)
	content := strings.Repeat("ü", 199) + "ab" // the preview is of characters, not bytes
	first, err := write(t, p, admin, args{"file": "GUARDRAILS", "content": content})
	require.Nil(t, err)
	require.Equal(t, space.GovernanceFile{SpaceID: w.SpaceID, File: space.Guardrails, Version: 1, Content: content, UserID: w.UserID, CreatedAt: first.CreatedAt}, first)
	again, err := write(t, p, admin, args{"spaceId": w.SpaceID, "file": "GUARDRAILS", "content": content})
	require.Nil(t, err)
	require.Equal(t, first, again)
	second, err := write(t, p, admin, args{"file": "GUARDRAILS", "content": ""})
	require.Nil(t, err)
	require.Equal(t, 2, second.Version)
	third, err := write(t, p, admin, args{"file": "GUARDRAILS", "content": content})
	require.Nil(t, err)
	require.Equal(t, 3, third.Version, "an older version's content is new again")
	other, err := write(t, p, admin, args{"file": "CONTEXT", "content": "We sell anvils."})
	require.Nil(t, err)
	require.Equal(t, 1, other.Version)

	recorded := p.Recorded(t)
	require.Len(t, recorded, 4)
	for i, want := range []struct{ file, content, preview string }{
		{"GUARDRAILS.md", content, strings.Repeat("ü", 199) + "a"},
		{"GUARDRAILS.md", "", ""},
		{"GUARDRAILS.md", content, strings.Repeat("ü", 199) + "a"},
		{"CONTEXT.md", "We sell anvils.", "We sell anvils."},
	} {
		e, sum := recorded[i], sha256.Sum256([]byte(want.content))
		require.Equal(t, audit.GovernanceFileEdited, e.Type)
		require.Equal(t, args{"file": want.file, "spaceId": w.SpaceID, "contentSha256": hex.EncodeToString(sum[:]), "preview": want.preview}, e.Payload)
		require.Equal(t, []string{w.TenantID, w.UserID, "space", w.SpaceID}, []string{e.TenantID, e.Actor, e.ResourceType, e.ResourceID})
	}
}

func TestGovernanceFilesThatAreRefused(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	_, err := write(t, p, handlertest.Claims(w, tenant.Member), args{"file": "CONTEXT", "content": "x"})
	require.Equal(t, fault.Forbidden, err.Type)
	for _, id := range []string{ident.New(), "no id", "", p.DB.World(t, "globex").SpaceID} {
		_, err = write(t, p, owner, args{"spaceId": id, "file": "CONTEXT", "content": "x"})
		require.Equal(t, fault.Missing("space"), err)
	}
	for _, input := range []args{
		{"file": "../../etc/passwd", "content": "x"}, {"content": "x"}, {"file": "CONTEXT", "content": "a\x00b"},
		{"file": "CONTEXT", "content": strings.Repeat("x", 64<<10+1)},
	} {
		_, err = write(t, p, owner, input)
		require.NotNil(t, err)
		require.Equal(t, fault.ValidationError, err.Type)
	}
	_, err = write(t, p, owner, args{"file": "CONTEXT", "content": strings.Repeat("x", 64<<10)})
	require.Nil(t, err)
}

func TestVersionsHaveNoGaps(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	const writers = 16
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { _, _ = write(t, p, owner, args{"file": "CONTEXT", "content": fmt.Sprint(i)}) })
	}
	wg.Wait()
	var least, most, all int
	require.NoError(t, p.DB.Superuser(t).QueryRow(t.Context(), `select min(version), max(version), count(*) from governance_files`).Scan(&least, &most, &all))
	require.Equal(t, []int{1, writers, writers}, []int{least, most, all})
	require.Len(t, p.Recorded(t), writers)
}

func TestWhatIsNotRecordedIsNotDone(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	repair := p.BreakOutbox(t)
	_, err := write(t, p, handlertest.Claims(w, tenant.Owner), args{"file": "CONTEXT", "content": "x"})
	require.Equal(t, fault.InternalError, err.Type)
	repair()
	f, err := write(t, p, handlertest.Claims(w, tenant.Owner), args{"file": "CONTEXT", "content": "x"})
	require.Nil(t, err)
	require.Equal(t, 1, f.Version)
}
