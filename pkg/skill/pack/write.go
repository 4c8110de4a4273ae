package pack

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"unicode/utf8"
)

const (
	firstDay  = 1<<5 | 1 // 1980-01-01, the first day that a zip can name
	utf8Names = 0x800    // the flag of a member whose name is in UTF-8
	textKind  = "text "  // what a member's comment begins with: the content's SHA-256 follows
	bytesKind = "bytes "
)

// Write is the archive in which a pack is stored: a zip that every tool reads.
func Write(contents map[string][]byte) ([]byte, error) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, f := range List(contents) {
		to, err := w.CreateRaw(header(f, contents[f.Path]))
		if err != nil {
			return nil, fmt.Errorf("skill pack: %s: %w", f.Path, err)
		}
		if _, err := to.Write(contents[f.Path]); err != nil {
			return nil, fmt.Errorf("skill pack: %s: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("skill pack: %w", err)
	}
	return archive.Bytes(), nil
}

func header(f File, content []byte) *zip.FileHeader {
	h := &zip.FileHeader{Name: f.Path, Comment: f.comment(), Method: zip.Store, ReaderVersion: 20,
		CRC32: crc32.ChecksumIEEE(content), CompressedSize64: uint64(f.Size), UncompressedSize64: uint64(f.Size)}
	h.SetMode(0o644)
	h.ModifiedDate = firstDay //nolint:staticcheck // CreateRaw writes this one, not Modified
	if len(f.Path) != utf8.RuneCountInString(f.Path) {
		h.Flags = utf8Names
	}
	return h
}

// comment says in the archive's list of members what the content is, so that the list is enough to know the pack.
func (f File) comment() string {
	if f.Text {
		return textKind + f.SHA256
	}
	return bytesKind + f.SHA256
}
