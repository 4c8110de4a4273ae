package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func imageOf(t *testing.T, program string) v1.Image {
	t.Helper()
	image, err := assemble([]byte(program), platform)
	require.NoError(t, err)
	return image
}

func TestTheImageSaysHowItRuns(t *testing.T) {
	config, err := imageOf(t, "program").ConfigFile()
	require.NoError(t, err)
	require.Equal(t, []string{"linux", "arm64"}, []string{config.OS, config.Architecture})
	require.Equal(t, v1.Config{User: "65532:65532", Entrypoint: []string{"/agent-runtime"}, ExposedPorts: map[string]struct{}{"8080/tcp": {}}, WorkingDir: "/",
		StopSignal: "SIGTERM", Labels: map[string]string{"org.opencontainers.image.title": "agent-runtime"}}, config.Config, "no environment, no command")
	require.True(t, config.Created.Equal(written))
}

// No shell, no tools, no folder anybody may write to.
func TestTheImageHoldsOneProgram(t *testing.T) {
	image := imageOf(t, "program")
	layers, err := image.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	files := mutate.Extract(image)
	defer files.Close()
	all := tar.NewReader(files)
	header, err := all.Next()
	require.NoError(t, err)
	require.Equal(t, []any{"agent-runtime", int64(0o555), 0, 0}, []any{header.Name, header.Mode, header.Uid, header.Gid})
	content, err := io.ReadAll(all)
	require.NoError(t, err)
	require.Equal(t, "program", string(content))
	_, err = all.Next()
	require.ErrorIs(t, err, io.EOF)
}

func TestTheSameProgramGivesTheSameBytes(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		file := filepath.Join(t.TempDir(), "agent-runtime.tar")
		require.NoError(t, writeArchive(file, imageOf(t, strings.Repeat("program", 1<<16))))
		var err error
		archives[i], err = os.ReadFile(file)
		require.NoError(t, err)
	}
	require.True(t, bytes.Equal(archives[0], archives[1]))
	one, err := imageOf(t, "one").Digest()
	require.NoError(t, err)
	other, err := imageOf(t, "other").Digest()
	require.NoError(t, err)
	require.NotEqual(t, one, other)
}

// The archive is an OCI layout that other tools read.
func TestTheArchiveIsALayout(t *testing.T) {
	image := imageOf(t, "program")
	folder := t.TempDir()
	require.NoError(t, writeArchive(filepath.Join(folder, "image.tar"), image))
	archive, err := os.Open(filepath.Join(folder, "image.tar"))
	require.NoError(t, err)
	defer archive.Close()
	unpack(t, archive, folder)
	index, err := ocilayout.ImageIndexFromPath(folder)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	want, err := image.Digest()
	require.NoError(t, err)
	read, err := index.Image(want)
	require.NoError(t, err)
	require.NoError(t, validate.Image(read))
}

func unpack(t *testing.T, archive io.Reader, folder string) {
	t.Helper()
	all := tar.NewReader(archive)
	for {
		header, err := all.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(folder, header.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		content, err := io.ReadAll(all)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, os.FileMode(header.Mode)))
	}
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	target := strings.TrimPrefix(server.URL, "http://") + "/agentplatform/agent-runtime:1.2.3"
	image := imageOf(t, "one")
	pushed, err := push(t.Context(), image, target, authn.DefaultKeychain)
	require.NoError(t, err)
	require.True(t, pushed)

	tag, err := name.NewTag(target)
	require.NoError(t, err)
	pulled, err := remote.Image(tag)
	require.NoError(t, err)
	require.NoError(t, validate.Image(pulled))
	want, err := image.Digest()
	require.NoError(t, err)
	got, err := pulled.Digest()
	require.NoError(t, err)
	require.Equal(t, want, got)

	pushed, err = push(t.Context(), image, target, authn.DefaultKeychain)
	require.NoError(t, err)
	require.False(t, pushed, "it is there")
	_, err = push(t.Context(), imageOf(t, "other"), target, authn.DefaultKeychain)
	require.ErrorContains(t, err, "a tag is never moved")
	still, err := remote.Head(tag)
	require.NoError(t, err)
	require.Equal(t, want, still.Digest)
}

func TestWhatIsNotPushed(t *testing.T) {
	image := imageOf(t, "one")
	for target, says := range map[string]string{"registry.test/agent-runtime": "registry/repository:tag", "registry.test/agent-runtime:latest": "pins a tag",
		"registry.test/UPPER:1": "registry/repository:tag", "": "registry/repository:tag"} {
		_, err := push(t.Context(), image, target, authn.DefaultKeychain)
		require.ErrorContains(t, err, says, target)
	}
	// A registry that does not let us in is not one without the tag.
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, ok := r.BasicAuth(); ok {
			asked = password
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	_, err := push(t.Context(), image, strings.TrimPrefix(server.URL, "http://")+"/agent-runtime:1", given{authn.Basic{Username: "AWS", Password: "given"}})
	require.ErrorContains(t, err, "asking the registry")
	require.Equal(t, "given", asked)
}

// Whoever builds with a container engine gets the same.
func TestTheDockerfileSaysTheSame(t *testing.T) {
	text, err := os.ReadFile("../agent-runtime/Dockerfile")
	require.NoError(t, err)
	_, final, ok := strings.Cut(string(text), "\nFROM scratch\n")
	require.True(t, ok)
	require.Equal(t, []string{"COPY --from=build --chmod=0555 /agent-runtime " + entrypoint, "WORKDIR /", "USER " + user, "EXPOSE " + port, "STOPSIGNAL SIGTERM",
		`ENTRYPOINT ["` + entrypoint + `"]`}, strings.Split(strings.TrimSpace(final), "\n"))
	require.Contains(t, string(text), `CGO_ENABLED=0 GOOS=linux GOARCH=`+platform+` go build -trimpath -buildvcs=false -ldflags "-s -w"`)
}
