package migrate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
)

// migration is one file.
type migration struct {
	version int64
	name    string // 00003_webhooks.sql
	text    string
	sha256  string // of the text, lower-case hex
}

var fileName = regexp.MustCompile(`^(\d+)_[a-z0-9_]+\.sql$`)

// read gives the migrations by version. They are at the root of files or in its folder sql.
func read(files fs.FS) (all []migration, err error) {
	names, err := fs.Glob(files, "*.sql")
	if err == nil && len(names) == 0 {
		names, err = fs.Glob(files, "sql/*.sql")
	}
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("migrations: there is no file")
	}
	for _, name := range names { // sorted; numbers have leading zeros
		number := fileName.FindStringSubmatch(path.Base(name))
		if number == nil {
			return nil, fmt.Errorf("migrations: %s is not named <number>_<name>.sql", name)
		}
		version, err := strconv.ParseInt(number[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migrations: %s: %w", name, err)
		}
		if n := len(all); n > 0 && version <= all[n-1].version {
			return nil, fmt.Errorf("migrations: %s does not come after %s", name, all[n-1].name)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("migrations: %w", err)
		}
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) // a checkout's line ends are no change
		sum := sha256.Sum256(text)
		all = append(all, migration{version, path.Base(name), string(text), hex.EncodeToString(sum[:])})
	}
	return all, nil
}
