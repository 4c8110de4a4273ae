package pack

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"unicode/utf8"
)

// How large a pack may be.
const (
	MaxZip      = 5 << 20  // bytes of the zip that is uploaded
	MaxUnpacked = 20 << 20 // bytes of all its files
	MaxFiles    = 500      // folders do not count
	MaxText     = 1 << 20  // bytes of a file of text, for a model may be given it
	MaxPath     = 300      // bytes of a path
)

// SkillFile is the file that makes a folder a skill pack.
const SkillFile = "SKILL.md"

// Pack is a skill pack that has been checked.
type Pack struct {
	Hash          string            `json:"hash"`
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	AllowedTools  []string          `json:"allowedTools,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	Instructions  string            `json:"instructions"` // the body of SKILL.md
	Files         []File            `json:"files"`        // by path, SKILL.md among them
}

// File is one file of a pack.
type File struct {
	Path   string `json:"path"`   // from the pack's folder
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // of its content, in hex
	Text   bool   `json:"text"`   // a model can be given it
}

// Describe is what is known of a file with this content.
func Describe(path string, content []byte) File {
	sum := sha256.Sum256(content)
	return File{Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Text: IsText(content)}
}

// IsText says that a model can be given the content: it is UTF-8 without NUL.
func IsText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }

// List describes all files of a pack, by path.
func List(contents map[string][]byte) []File {
	files := make([]File, 0, len(contents))
	for _, path := range slices.Sorted(maps.Keys(contents)) {
		files = append(files, Describe(path, contents[path]))
	}
	return files
}

// Hash is the hash of a pack of these files, in whatever order they are.
func Hash(files []File) string {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	hash := sha256.New()
	for _, f := range sorted {
		hash.Write([]byte(f.Path + "\x00" + f.SHA256 + "\n"))
	}
	return hex.EncodeToString(hash.Sum(nil))
}
