//go:build long

package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// AgentCore runs arm64 only; from scratch there is no loader and no library, and no certificate but those that are linked.
func TestTheProgramNeedsNothing(t *testing.T) {
	program, err := build(t.Context(), platform)
	require.NoError(t, err)
	binary, err := elf.NewFile(bytes.NewReader(program))
	require.NoError(t, err)
	require.Equal(t, elf.EM_AARCH64, binary.Machine)
	for _, p := range binary.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type)
		require.NotEqual(t, elf.PT_DYNAMIC, p.Type)
	}
	built, err := buildinfo.Read(bytes.NewReader(program))
	require.NoError(t, err)
	linked := map[string]bool{}
	for _, d := range built.Deps {
		linked[d.Path] = true
	}
	require.True(t, linked["golang.org/x/crypto/x509roots/fallback"], "the certificates")
	for _, s := range built.Settings {
		require.NotContains(t, s.Key, "vcs", "the same source gives the same program, committed or not")
	}
	require.NotContains(t, string(program), os.TempDir()+"/agent-runtime-")
}
