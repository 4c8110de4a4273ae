package intake

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/cases"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

// member is a file of the zip.
type member struct {
	path string
	file *zip.File
}

const maxEntries = 4 * pack.MaxFiles // files, folders, and what macOS adds

// list finds the files of the zip, and refuses what no pack has before anything is unpacked.
func list(upload []byte) ([]member, error) {
	if len(upload) > pack.MaxZip {
		return nil, fault.Invalid("the zip has more than %d MiB", pack.MaxZip>>20)
	}
	r, err := zip.NewReader(bytes.NewReader(upload), int64(len(upload)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // paths are checked here
		return nil, fault.Invalid("the upload is not a zip that can be read: its list of files is missing or broken")
	}
	if len(r.File) > maxEntries {
		return nil, errFiles
	}
	var members []member
	for i, file := range r.File {
		name, err := checkName(file.Name, i)
		if err != nil {
			return nil, err
		}
		if err := checkKind(name, file); err != nil {
			return nil, err
		}
		if !strings.HasSuffix(name, "/") && !added(name) {
			members = append(members, member{name, file})
		}
	}
	if len(members) > pack.MaxFiles {
		return nil, errFiles
	}
	return members, cmp.Or(checkApart(r.File), checkDistinct(members), checkClaims(members))
}

var (
	errFiles    = fault.Invalid("the zip has more than %d files", pack.MaxFiles)
	errUnpacked = fault.Invalid("the files have more than %d MiB together when they are unpacked", pack.MaxUnpacked>>20)
)

// checkKind refuses what is not a file or a folder that everybody can unpack.
func checkKind(name string, file *zip.File) error {
	folder := strings.HasSuffix(name, "/")
	kind := file.Mode().Type()
	switch {
	case kind&fs.ModeSymlink != 0:
		return fault.Invalid("%s is a symbolic link; a pack has files only: put the file itself there", shown(name))
	case kind&^fs.ModeDir != 0 || !folder && kind != 0:
		return fault.Invalid("%s is a special file; a pack has plain files only", shown(name))
	case folder && (file.UncompressedSize64 != 0 || file.CompressedSize64 > 2): // a folder may be "compressed" nothing
		return fault.Invalid("%s is a folder with content", shown(name))
	case file.Flags&encrypted != 0:
		return fault.Invalid("%s is encrypted; make the zip without a password", shown(name))
	case file.Method != zip.Store && file.Method != zip.Deflate:
		return fault.Invalid("%s is compressed by method %d; make the zip with the usual one (deflate)", shown(name), file.Method)
	}
	return nil
}

const encrypted = 1 | 1<<6 | 1<<13 // the member, strongly, the list of members

// checkApart refuses members that have bytes of the zip together: so a small zip would become a large one.
func checkApart(files []*zip.File) error {
	type part struct {
		start, end int64
		name       string
	}
	var parts []part
	for _, f := range files {
		start, err := f.DataOffset()
		if err != nil {
			return damaged(f.Name)
		}
		parts = append(parts, part{start, start + int64(min(f.CompressedSize64, pack.MaxZip)), f.Name})
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(parts); i++ {
		if parts[i].start-localHeader < parts[i-1].end {
			return fault.Invalid("%s and %s overlap in the zip", shown(parts[i-1].name), shown(parts[i].name))
		}
	}
	return nil
}

const localHeader = 30 // bytes of a member's own header, at the least

// checkDistinct refuses paths that are one where cases are not told apart, and files that are folders of others.
func checkDistinct(members []member) error {
	fold := cases.Fold()
	seen := map[string]string{}
	for _, m := range members {
		folded := fold.String(m.path)
		switch other, twice := seen[folded]; {
		case twice && other == m.path:
			return fault.Invalid("%s is in the zip twice", shown(m.path))
		case twice:
			return fault.Invalid("%s and %s differ in upper and lower case only", shown(other), shown(m.path))
		}
		seen[folded] = m.path
	}
	for _, m := range members {
		for above := path.Dir(m.path); above != "."; above = path.Dir(above) {
			if file, is := seen[fold.String(above)]; is {
				return fault.Invalid("%s is a file, and the folder of %s", shown(file), shown(m.path))
			}
		}
	}
	return nil
}

// checkClaims refuses a zip that says itself that it is too large.
func checkClaims(members []member) error {
	total := uint64(0)
	for _, m := range members {
		if total += min(m.file.UncompressedSize64, pack.MaxUnpacked+1); total > pack.MaxUnpacked {
			return errUnpacked
		}
	}
	return nil
}

// unpack reads all files.
func unpack(members []member) (map[string][]byte, error) {
	contents, room := map[string][]byte{}, int64(pack.MaxUnpacked)
	for _, m := range members {
		content, err := unpackOne(m, room)
		if err != nil {
			return nil, err
		}
		room -= int64(len(content))
		if len(content) > pack.MaxText && pack.IsText(content) {
			return nil, fault.Invalid("%s has %d bytes; a file of text has at most %d MiB, for an agent may read it", shown(m.path), len(content), pack.MaxText>>20)
		}
		contents[m.path] = content
	}
	return contents, nil
}

// unpackOne reads a file of at most so many bytes.
func unpackOne(m member, room int64) ([]byte, error) {
	r, err := m.file.Open()
	if err != nil {
		return nil, damaged(m.path)
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, room+1))
	switch {
	case int64(len(content)) > room:
		return nil, errUnpacked
	case err != nil || uint64(len(content)) != m.file.UncompressedSize64:
		return nil, damaged(m.path)
	}
	return content, nil
}

func damaged(name string) error {
	return fault.Invalid("%s cannot be unpacked: the zip is damaged there; make it anew", shown(name))
}
