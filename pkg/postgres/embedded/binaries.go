//go:build unix

package embedded

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// places are where installers put PostgreSQL without putting it on the PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin",                            // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                     // the PostgreSQL project's RPMs
	"/usr/libexec/postgresql*", "/usr/lib/postgresql*/bin", // Alpine, SUSE
	"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin", "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin", // built from source
}

// findBinaries is a folder with a postgres and an initdb that run here. major is the version that an existing data directory needs,
// 0 for any from oldest on.
func findBinaries(ctx context.Context, config Config, major int) (string, error) {
	fits := func(dir string) bool {
		v := binaryVersion(ctx, dir)
		return v >= oldest && (major == 0 || v == major)
	}
	need, remedy := fmt.Sprintf("PostgreSQL %d or newer", oldest), "install it (apt-get install postgresql, brew install postgresql@16)"
	if major != 0 {
		need = fmt.Sprintf("PostgreSQL %d, which made %s,", major, filepath.Join(config.Dir, "data"))
		remedy = fmt.Sprintf("install that version, or remove %s to start empty", config.Dir)
	}
	if config.Binaries != "" {
		if fits(config.Binaries) {
			return config.Binaries, nil
		}
		return "", &Error{need + " was not found in " + config.Binaries, "name the folder that holds postgres and initdb", nil}
	}
	if name, err := exec.LookPath("postgres"); err == nil {
		if name, err := filepath.EvalSymlinks(name); err == nil && fits(filepath.Dir(name)) {
			return filepath.Dir(name), nil
		}
	}
	for _, dir := range installed() {
		if fits(dir) {
			return dir, nil
		}
	}
	if err := ctx.Err(); err != nil { // then no program ran at all
		return "", err
	}
	if major == 0 || major == packageMajor {
		dir, err := fetched(ctx, config)
		if err == nil && fits(dir) {
			return dir, nil
		}
		if err == nil {
			err = fmt.Errorf("the binaries in %s do not run here", dir)
		}
		return "", &Error{fmt.Sprintf("%s was not found on this machine and cannot be fetched: %v", need, err), remedy + ", or set DATABASE_URL", err}
	}
	return "", &Error{need + " was not found on this machine", remedy, nil}
}

// installed lists the usual places that exist, newest version first.
func installed() []string {
	var dirs []string
	for _, pattern := range places {
		found, _ := filepath.Glob(filepath.Join(pattern, "initdb"))
		for _, name := range found {
			dirs = append(dirs, filepath.Dir(name))
		}
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(numberIn(b), numberIn(a)) })
	return dirs
}

var digits = regexp.MustCompile(`\d+`)

func numberIn(dir string) int {
	n, _ := strconv.Atoi(digits.FindString(dir))
	return n
}

var version = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// binaryVersion is the major version of a folder's postgres, run as the server would be; 0 when it cannot be run.
func binaryVersion(ctx context.Context, dir string) int {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0
	}
	out, err := output(newCommand().build(ctx, filepath.Join(dir, "postgres"), "--version"))
	m := version.FindStringSubmatch(out)
	if err != nil || m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}
