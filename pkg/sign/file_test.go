package sign_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/sign"
	"github.com/stretchr/testify/require"
)

// TestFileIsMadeOnce: of many that open a missing key at once, all have the same; so has who opens it later.
func TestFileIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	const openers = 8
	keys, errs := make([]*ecdsa.PublicKey, openers), make([]error, openers)
	var wg sync.WaitGroup
	for i := range openers {
		wg.Go(func() {
			s, err := sign.File(path)
			if err == nil {
				keys[i], err = s.Public(t.Context())
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for i := range openers {
		require.NoError(t, errs[i])
		require.True(t, keys[0].Equal(keys[i]))
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing else is left there")

	s, err := sign.File(path)
	require.NoError(t, err)
	again, err := s.Public(t.Context())
	require.NoError(t, err)
	require.True(t, keys[0].Equal(again))
}

func TestFileRefusesOtherKeys(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block := func(kind string, key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	sec1, err := x509.MarshalECPrivateKey(p256)
	require.NoError(t, err)
	good := block("PRIVATE KEY", p256)
	dir := t.TempDir()
	for why, text := range map[string][]byte{
		"empty": {}, "words": []byte("key"), "P-384": block("PRIVATE KEY", p384), "RSA": block("PRIVATE KEY", rsa2048), "Ed25519": block("PRIVATE KEY", ed),
		"SEC 1":    pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}),
		"a public": block("PUBLIC KEY", p256), "two": append(append([]byte{}, good...), good...), "cut": good[:len(good)/2],
	} {
		path := filepath.Join(dir, why)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		_, err := sign.File(path)
		require.ErrorContains(t, err, path, why)
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, left, "left as it was")
	}
	path := filepath.Join(dir, "good")
	require.NoError(t, os.WriteFile(path, good, 0o600))
	_, err = sign.File(path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o640))
	_, err = sign.File(path)
	require.ErrorContains(t, err, "chmod 600")
	_, err = sign.File(filepath.Join(dir, "no such folder", "key"))
	require.Error(t, err)
	_, err = sign.File(dir)
	require.Error(t, err)
}
