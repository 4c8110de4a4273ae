package anchor_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/formats/log"
	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
)

func signed(t *testing.T, size uint64) (string, anchor.Checkpoint, key) {
	t.Helper()
	k := testKey(t, "log")
	c := anchor.Checkpoint{Origin: origin, Size: size, Root: unhex(anchor.SHA256([]byte{byte(size)}))}
	text, err := anchor.SignCheckpoint(t.Context(), c, k)
	require.NoError(t, err)
	return text, c, k
}

// TestOthersReadOurNotes: the verifiers of transparency-dev and the note package of Go open what we sign.
func TestOthersReadOurNotes(t *testing.T) {
	for _, size := range []uint64{1, 96, 999_999_999_999} {
		text, c, k := signed(t, size)
		private, w := witnessKey(t)
		text += cosign(text, private, w, 1_700_000_000)

		ours, err := formats.NewECDSAVerifier(k.verifier(t, origin).String())
		require.NoError(t, err)
		theirs, err := formats.NewVerifierForCosignatureV1(w.String())
		require.NoError(t, err)
		n, err := note.Open([]byte(text), note.VerifierList(ours, theirs))
		require.NoError(t, err)
		require.Len(t, n.Sigs, 2)
		require.Equal(t, c.Body(), n.Text)

		parsed, rest, n, err := log.ParseCheckpoint([]byte(text), origin, ours, theirs)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, c, anchor.Checkpoint{Origin: parsed.Origin, Size: parsed.Size, Root: [32]byte(parsed.Hash)})
		require.Len(t, n.Sigs, 2)
	}
}

// TestWeReadOthersCosignatures: those of transparency-dev's witness signer.
func TestWeReadOthersCosignatures(t *testing.T) {
	text, c, k := signed(t, 7)
	skey, vkey, err := note.GenerateKey(rand.Reader, "witness.example/other")
	require.NoError(t, err)
	signer, err := formats.NewSignerForCosignatureV1(skey)
	require.NoError(t, err)
	vkey, err = formats.VKeyToCosignatureV1(vkey)
	require.NoError(t, err)
	w, err := anchor.ParseVerifier([]byte(vkey+"\n"), "")
	require.NoError(t, err)
	require.Equal(t, vkey, w.String())

	n, err := note.Open([]byte(text), note.VerifierList(must(formats.NewECDSAVerifier(k.verifier(t, origin).String()))))
	require.NoError(t, err)
	cosigned, err := note.Sign(n, signer)
	require.NoError(t, err)
	got, by, err := anchor.OpenCheckpoint(string(cosigned), []anchor.Verifier{k.verifier(t, origin), w})
	require.NoError(t, err)
	require.Equal(t, c, got)
	require.Len(t, by, 2)
	require.True(t, by[1].Witness)
	require.WithinDuration(t, time.Now(), by[1].Time, time.Minute)

	// As a witness's answer: lines alone, with those of strangers.
	lines := strings.TrimPrefix(string(cosigned), text)
	_, stranger := witnessKey(t)
	private, _ := witnessKey(t)
	lines += cosign(text, private, stranger, 5)
	verified, found, err := anchor.Cosignatures(text, lines, []anchor.Verifier{w})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, string(cosigned), text+verified)
	other, _, _ := signed(t, 8)
	_, _, err = anchor.Cosignatures(other, lines, []anchor.Verifier{w})
	require.ErrorIs(t, err, anchor.ErrSignature)
	_, _, err = anchor.Cosignatures(text, "witness\n", []anchor.Verifier{w})
	require.Error(t, err)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestOpenCheckpointRefuses(t *testing.T) {
	text, _, k := signed(t, 7)
	keys := []anchor.Verifier{k.verifier(t, origin)}
	private, w := witnessKey(t)
	sig := strings.TrimPrefix(text, upTo(text, "— "))
	for why, bad := range map[string]string{
		"nothing": "", "no signature": strings.TrimSuffix(text, sig), "no empty line": strings.Replace(text, "\n\n", "\n", 1),
		"a line end missing": strings.TrimSuffix(text, "\n"), "carriage returns": strings.ReplaceAll(text, "\n", "\r\n"),
		"an extension line": strings.Replace(text, "\n\n", "\nmore\n\n", 1), "a plus in the size": strings.Replace(text, "\n7\n", "\n+7\n", 1),
		"a size too large": strings.Replace(text, "\n7\n", "\n18446744073709551616\n", 1), "a short root": strings.Replace(text, "=\n\n", "\n\n", 1),
		"a space in a name": strings.Replace(text, "— ", "— a ", 1), "a plus in the origin": strings.Replace(text, origin, "log+example", 1),
		"an origin that looks like JSON": strings.ReplaceAll(text, origin, "{log"), "no name": strings.Replace(text, "— "+origin, "— ", 1),
		"a signature too short": strings.Replace(text, sig, line(origin, []byte{1, 2, 3, 4}), 1), "invalid UTF-8": strings.ReplaceAll(text, origin, "log\xff"),
		"too many signatures": text + strings.Repeat(sig, 64), "too long": text + strings.Repeat(line("other.example/x", make([]byte, 3000)), 17),
	} {
		_, _, err := anchor.OpenCheckpoint(bad, keys)
		require.Error(t, err, why)
		require.NotErrorIs(t, err, anchor.ErrSignature, why)
	}
	for why, bad := range map[string]string{
		"another size": strings.Replace(text, "\n7\n", "\n8\n", 1), "another origin": strings.ReplaceAll(text, origin, "log.example/other"),
		"a witness only":  strings.TrimSuffix(text, sig) + cosign(text, private, w, 5),
		"a wrong witness": text + cosign(strings.Replace(text, "\n7\n", "\n8\n", 1), private, w, 5),
	} {
		_, _, err := anchor.OpenCheckpoint(bad, append(keys, w))
		require.ErrorIs(t, err, anchor.ErrSignature, why)
	}
	_, by, err := anchor.OpenCheckpoint(text+line("stranger.example/x", make([]byte, 90)), keys)
	require.NoError(t, err, "lines of unknown keys are ignored")
	require.Equal(t, []anchor.Signed{{Name: origin}}, by)
	_, _, err = anchor.OpenCheckpoint(text, nil)
	require.ErrorIs(t, err, anchor.ErrSignature)
	_, _, err = anchor.OpenCheckpoint(text, []anchor.Verifier{{}})
	require.ErrorIs(t, err, anchor.ErrSignature)
}

func TestParseVerifier(t *testing.T) {
	k := testKey(t, "log")
	text, _, _ := signed(t, 3)
	pem, err := sign.PublicPEM(&k.private.PublicKey)
	require.NoError(t, err)
	vkey := k.verifier(t, origin).String()
	for _, form := range []struct{ text, origin string }{{string(pem), origin}, {string(pem), ""}, {vkey, origin}, {vkey, ""}, {vkey + "\n", ""}} {
		v, err := anchor.ParseVerifier([]byte(form.text), form.origin)
		require.NoError(t, err)
		require.False(t, v.Witness())
		_, _, err = anchor.OpenCheckpoint(text, []anchor.Verifier{v})
		require.NoError(t, err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	p384, err := sign.PublicPEM(&other.PublicKey)
	require.NoError(t, err)
	_, err = anchor.LogVerifier(origin, &other.PublicKey)
	require.Error(t, err)
	_, ed25519Note, err := note.GenerateKey(rand.Reader, origin)
	require.NoError(t, err)
	for why, bad := range map[string]string{
		"nothing": "", "words": "a key", "P-384": string(p384), "two blocks": string(pem) + string(pem), "a private key": strings.ReplaceAll(string(pem), "PUBLIC", "PRIVATE"),
		"type 1": ed25519Note, "another key id": strings.Replace(vkey, "+", "+0", 1), "no key": origin + "+01020304+Ag==",
		"another name": strings.Replace(vkey, origin, "log.example/other", 1), "not base64": vkey + "!",
	} {
		_, err := anchor.ParseVerifier([]byte(bad), origin)
		require.Error(t, err, why)
	}
	_, err = anchor.WitnessVerifier("w x", make([]byte, 32))
	require.Error(t, err)
	_, err = anchor.WitnessVerifier("w", make([]byte, 31))
	require.Error(t, err)
}

func TestNames(t *testing.T) {
	const tenant = "0190a1b2-c3d4-7e5f-8000-000000000003"
	require.Equal(t, "anchors/cadence-000000000096.json", anchor.Key(96))
	require.Equal(t, "heads/000000000096.json", anchor.BeaconKey(96))
	require.Equal(t, "events/"+tenant+"/cadence-000000000096.ndjson", anchor.EventsKey(tenant, 96))
	for _, n := range []uint64{1, 96, 999_999_999_999} {
		got, ok := anchor.ParseKey(anchor.Key(n))
		require.True(t, ok && got == n)
		got, ok = anchor.ParseBeaconKey(anchor.BeaconKey(n))
		require.True(t, ok && got == n)
		got, ok = anchor.ParseCadenceID(anchor.CadenceID(n))
		require.True(t, ok && got == n)
		id, got, ok := anchor.ParseEventsKey(anchor.EventsKey(tenant, n))
		require.True(t, ok && got == n && id == tenant)
	}
	for _, key := range []string{"", "anchors/", "anchors/cadence-1.json", "anchors/cadence-000000000000.json", "anchors/cadence-00000000001x.json", "anchors/cadence-+00000000001.json",
		"anchors/cadence-000000000001.json.bak", "anchors/cadence-0000000000001.json", "x/anchors/cadence-000000000001.json"} {
		_, ok := anchor.ParseKey(key)
		require.False(t, ok, key)
	}
	for _, key := range []string{"", "events/", "events/" + strings.ToUpper(tenant) + "/cadence-000000000001.ndjson", "events/x/cadence-000000000001.ndjson", fmt.Sprintf("events/%s/cadence-000000000001.json", tenant)} {
		_, _, ok := anchor.ParseEventsKey(key)
		require.False(t, ok, key)
	}
}

// TestSignerIsHeldToItsKey: a signature that does not verify is not published.
func TestSignerIsHeldToItsKey(t *testing.T) {
	_, err := anchor.SignCheckpoint(t.Context(), anchor.Checkpoint{Origin: origin, Size: 1}, twoKeys{testKey(t, "log"), testKey(t, "other")})
	require.ErrorIs(t, err, anchor.ErrSignature)
	_, err = anchor.SignCheckpoint(t.Context(), anchor.Checkpoint{Origin: "a b", Size: 1}, testKey(t, "log"))
	require.Error(t, err)
}

// twoKeys says one key and signs with another.
type twoKeys struct{ says, signs key }

func (k twoKeys) Public(ctx context.Context) (*ecdsa.PublicKey, error) { return k.says.Public(ctx) }

func (k twoKeys) Sign(ctx context.Context, digest [32]byte) ([]byte, error) {
	return k.signs.Sign(ctx, digest)
}
