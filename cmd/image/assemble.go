package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What the image says, as cmd/agent-runtime/Dockerfile does.
const (
	entrypoint = "/agent-runtime"
	user       = "65532:65532" // nobody's; the image has no other
	port       = "8080/tcp"
)

// written is the time that everything in the image carries.
var written = time.Unix(0, 0).UTC()

// assemble is the image: the program and nothing else, in one layer. Its certificates are linked into the program.
func assemble(program []byte, arch string) (v1.Image, error) {
	files, err := archive(file{entrypoint[1:], 0o555, program})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: written}, CreatedBy: "cmd/image"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: written}
	config.Config = v1.Config{User: user, Entrypoint: []string{entrypoint}, ExposedPorts: map[string]struct{}{port: {}}, WorkingDir: "/", StopSignal: "SIGTERM",
		Labels: map[string]string{"org.opencontainers.image.title": "agent-runtime"}}
	return mutate.ConfigFile(image, config)
}

// writeArchive writes the image as an OCI layout in a tar file, which container tools load and copy. It appears under its name only when it is
// whole.
func writeArchive(name string, image v1.Image) error {
	files, err := layout(image)
	if err != nil {
		return err
	}
	content, err := archive(files...)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".part", content, 0o644); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

// layout is the image as files (OCI image layout 1.0.0).
func layout(image v1.Image) ([]file, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	configName, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	parsed, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{{MediaType: types.OCIManifestSchema1,
		Size: int64(len(manifest)), Digest: digest, Platform: &v1.Platform{OS: parsed.OS, Architecture: parsed.Architecture}}}})
	if err != nil {
		return nil, err
	}
	files := []file{{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", 0o644, index},
		{blob(digest), 0o644, manifest}, {blob(configName), 0o644, config}}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		f, err := layerFile(l)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func layerFile(l v1.Layer) (file, error) {
	digest, err := l.Digest()
	if err != nil {
		return file{}, err
	}
	compressed, err := l.Compressed()
	if err != nil {
		return file{}, err
	}
	defer compressed.Close()
	content, err := io.ReadAll(compressed)
	return file{blob(digest), 0o644, content}, err
}

func blob(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

type file struct {
	name    string
	mode    int64
	content []byte
}

// archive is a tar of the files: root's, with one time.
func archive(files ...file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: written, Format: tar.FormatUSTAR}); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	err := w.Close() // writes the end
	return b.Bytes(), err
}
