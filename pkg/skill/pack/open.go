package pack

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Archive is a stored pack that is open for reading. It may be used by several at once, as far as what it reads from may.
type Archive struct {
	files   []File
	members map[string]*zip.File
}

var errChanged = errors.New("skill pack: the archive is not what was stored")

// maxArchive is larger than any archive that Write makes: it has each path twice, and about 220 bytes besides for each file.
const maxArchive = MaxUnpacked + MaxFiles*(2*MaxPath+300) + 1<<10

// Open reads the list of files of an archive that Write made, of size bytes, and nothing else. hash is the hash of the pack that it must be.
func Open(from io.ReaderAt, size int64, hash string) (*Archive, error) {
	if size > maxArchive {
		return nil, errChanged
	}
	r, err := zip.NewReader(from, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // a path that was changed has another hash
		return nil, fmt.Errorf("skill pack: %w", err)
	}
	a := &Archive{members: map[string]*zip.File{}}
	total := uint64(0)
	for _, member := range r.File {
		f, ok := describe(member)
		total += member.UncompressedSize64
		if !ok || len(a.files) == MaxFiles || total > MaxUnpacked || a.members[f.Path] != nil {
			return nil, errChanged
		}
		a.files, a.members[f.Path] = append(a.files, f), member
	}
	if Hash(a.files) != hash {
		return nil, errChanged
	}
	return a, nil
}

// describe is what the list says of a member, if it can be one that Write wrote.
func describe(member *zip.File) (File, bool) {
	if member.Method != zip.Store || member.CompressedSize64 != member.UncompressedSize64 || member.UncompressedSize64 > MaxUnpacked {
		return File{}, false
	}
	kind, sum, found := strings.Cut(member.Comment, " ")
	f := File{Path: member.Name, Size: int64(member.UncompressedSize64), SHA256: sum, Text: kind+" " == textKind}
	return f, found && f.comment() == member.Comment
}

// Files are the pack's files, by path.
func (a *Archive) Files() []File { return slices.Clone(a.files) }

// File reads one file. One that the pack does not have is a NotFound.
func (a *Archive) File(path string) ([]byte, error) {
	content, _, err := a.read(path)
	return content, err
}

// Text reads a file for a model. One that is not text is a fault.ValidationError.
func (a *Archive) Text(path string) (string, error) {
	content, f, err := a.read(path)
	switch {
	case err != nil:
		return "", err
	case !f.Text:
		return "", fault.Invalid("%s is not text: it has %d bytes that a model cannot read", f.Path, f.Size)
	}
	return string(content), nil
}

// Instructions reads the body of the pack's SKILL.md.
func (a *Archive) Instructions() (string, error) {
	skill, err := a.Text(SkillFile)
	if err != nil {
		return "", err
	}
	return Instructions(skill), nil
}

func (a *Archive) read(path string) ([]byte, File, error) {
	i := slices.IndexFunc(a.files, func(f File) bool { return f.Path == path })
	if i < 0 {
		return nil, File{}, fault.New(fault.NotFound, "the skill pack has no file %.*q", MaxPath, path)
	}
	f := a.files[i]
	r, err := a.members[path].Open()
	if err != nil {
		return nil, f, fmt.Errorf("skill pack: %s: %w", path, err)
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, f.Size+1))
	if err != nil {
		return nil, f, fmt.Errorf("skill pack: %s: %w", path, err)
	}
	if Describe(path, content) != f {
		return nil, f, fmt.Errorf("%w: %s", errChanged, path)
	}
	return content, f, nil
}
