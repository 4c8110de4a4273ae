package e2e

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// The audit log of a running platform: the first conversation's events are anchored, the verifier is content, a proof file checks on its own,
// and one byte changed by the database's superuser is found and named.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	p := startPlatform(t, "ANCHOR_INTERVAL=1s")
	require.Contains(t, p.output.String(), "auth.signin.success", "the first conversation's sign-in")

	ops := p.as(t, "ops")
	created := p.as(t, "alice").query(t, `mutation { createAgent(input: {name: "Audited"}) { id } }`, nil).get("createAgent.id")
	event := p.anchored(t, ops, "agent.created", created)
	require.NoError(t, p.await("is published: it covers the first conversation's events"))

	out, code := p.verify(t, "verify", "--bucket", "agentplatform-local-anchors")
	require.Equal(t, 0, code, out)

	proof := filepath.Join(t.TempDir(), "proof.json")
	out, code = p.verify(t, "prove", event, "-o", proof)
	require.Equal(t, 0, code, out)
	alone(t, 0, verifier, "check", proof, "--public-key", p.Outputs.AnchorPublicKey, "--origin", p.Outputs.AnchorOrigin)
	alone(t, 0, nodePath(t), "../../docs/check-proof.mjs", proof, "--public-key", p.Outputs.AnchorPublicKey, "--origin", p.Outputs.AnchorOrigin)
	fromAPI := filepath.Join(t.TempDir(), "proof.json")
	answer := ops.query(t, `query ($id: ID!) { complianceProof(eventId: $id) }`, vars{"id": event}).get("complianceProof")
	require.NoError(t, os.WriteFile(fromAPI, []byte(answer), 0o600))
	alone(t, 0, verifier, "check", fromAPI, "--public-key", p.Outputs.AnchorPublicKey, "--origin", p.Outputs.AnchorOrigin)

	p.superuser(t, `update audit_events set canonical = replace(canonical, '"Audited"', '"audited"') where event_id = $1`, event)
	out, code = p.verify(t, "verify", "--bucket", "agentplatform-local-anchors")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, event, "the event is named")
}

// anchored waits until the event of this type with this resource is anchored, and gives its id.
func (p *platform) anchored(t testing.TB, ops *user, eventType, resource string) (id string) {
	t.Helper()
	require.NoError(t, until(func() (bool, error) {
		a := ops.query(t, `query ($type: String) { complianceEvents(filter: {eventType: $type}, limit: 1) { items { eventId resourceId anchor { status } } } }`,
			vars{"type": eventType})
		id = a.get("complianceEvents.items.0.eventId")
		return a.get("complianceEvents.items.0.resourceId") == resource && a.get("complianceEvents.items.0.anchor.status") == "ANCHORED", nil
	}))
	return id
}

// await waits for a text of the platform's output.
func (p *platform) await(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	defer cancel()
	return p.output.await(ctx, text)
}

// verify runs the verifier with the environment that the platform offers, in a shell as a user would.
func (p *platform) verify(t testing.TB, args ...string) (output string, code int) {
	t.Helper()
	cmd := exec.Command("bash", append([]string{"-euc", `. <(curl -s "$1/local/verify.env"); shift; exec "$@"`, "bash", p.Outputs.APIURL, verifier}, args...)...)
	cmd.Env = append(environment(t.TempDir()), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// superuser runs a statement as the database's superuser, past all triggers.
func (p *platform) superuser(t testing.TB, statement string, args ...any) {
	t.Helper()
	conn := p.database(t)
	defer conn.Close(context.Background())
	_, err := conn.Exec(t.Context(), "set session_replication_role = replica")
	require.NoError(t, err)
	tag, err := conn.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())
}

// database is a connection as the database's superuser.
func (p *platform) database(t testing.TB) *pgx.Conn {
	t.Helper()
	at, err := url.Parse(p.Outputs.DatabaseReaderURL)
	require.NoError(t, err)
	at.User = url.UserPassword("postgres", p.secret(t, "POSTGRES_PASSWORD"))
	conn, err := pgx.Connect(t.Context(), at.String())
	require.NoError(t, err)
	return conn
}

// secret is a secret of the platform, as a shell reads it.
func (p *platform) secret(t testing.TB, name string) string {
	t.Helper()
	out, err := exec.Command("bash", "-euc", `. "$1"; printf %s "${!2}"`, "bash", filepath.Join(p.dir, "secrets.env"), name).Output()
	require.NoError(t, err)
	return string(out)
}

// alone runs a program in an empty folder with an empty environment.
func alone(t testing.TB, want int, name string, args ...string) {
	t.Helper()
	for i, a := range args {
		if _, err := os.Stat(a); err == nil {
			args[i], err = filepath.Abs(a)
			require.NoError(t, err)
		}
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{}
	out, _ := cmd.CombinedOutput()
	require.Equal(t, want, cmd.ProcessState.ExitCode(), "%s", out)
}

func nodePath(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("node")
	require.NoError(t, err)
	return path
}
