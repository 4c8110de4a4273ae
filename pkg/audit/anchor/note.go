package anchor

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

const (
	maxNote       = 64 << 10 // bytes of a note; a witness of a quantum-proof kind adds 5 kB
	maxSignatures = 64       // lines of a note
)

// ErrSignature is a text that no trusted key signed, or one on which the signature of a trusted key is wrong.
var ErrSignature = errors.New("anchor: no valid signature of a trusted key")

// Checkpoint is the state of the log: what the note of an anchor says.
type Checkpoint struct {
	Origin string      // the log's name, such as example.com/audit: the same in all its checkpoints
	Size   uint64      // anchors in the log
	Root   merkle.Hash // of the tree over them
}

// Body is the text that is signed: three lines.
func (c Checkpoint) Body() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// Signer is who signs for the log; pkg/sign has them.
type Signer interface {
	Sign(ctx context.Context, digest [32]byte) ([]byte, error)
	Public(ctx context.Context) (*ecdsa.PublicKey, error)
}

// SignCheckpoint is the note of c, signed by the log's key under the name of its origin.
func SignCheckpoint(ctx context.Context, c Checkpoint, key Signer) (note string, err error) {
	if err := checkName(c.Origin); err != nil {
		return "", fmt.Errorf("anchor: origin: %w", err)
	}
	public, err := key.Public(ctx)
	if err != nil {
		return "", err
	}
	v, err := LogVerifier(c.Origin, public)
	if err != nil {
		return "", err
	}
	sig, err := key.Sign(ctx, sha256.Sum256([]byte(c.Body())))
	if err != nil {
		return "", err
	}
	s := signature{c.Origin, v.id, sig}
	if _, err := v.verify(c.Body(), sig); err != nil {
		return "", fmt.Errorf("anchor: the key's own signature: %w", err)
	}
	return c.Body() + "\n" + s.line(), nil
}

// Signed is a signature that was found right.
type Signed struct {
	Name    string
	Witness bool
	Time    time.Time // when the witness says it signed; zero for the log
}

// ParseCheckpoint reads a note without verifying it.
func ParseCheckpoint(note string) (Checkpoint, error) {
	c, _, err := splitNote(note)
	if err != nil {
		return c, fmt.Errorf("anchor: %w", err)
	}
	return c, nil
}

// OpenCheckpoint reads a note and verifies every line of a known key: each must be right, one must be the log's own,
// made by a key of keys that has the origin's name; else it is ErrSignature. Lines of unknown keys are ignored.
func OpenCheckpoint(note string, keys []Verifier) (Checkpoint, []Signed, error) {
	c, lines, err := splitNote(note)
	if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("anchor: %w", err)
	}
	signed, err := verifyLines(c, lines, keys)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	for _, s := range signed {
		if !s.Witness && s.Name == c.Origin {
			return c, signed, nil
		}
	}
	return Checkpoint{}, nil, ErrSignature
}

// Cosignatures takes the right ones of the given witnesses from the lines that a witness answered for a note: to be
// added at the note's end. One line of each witness is taken, so that none can make the note too long; lines of unknown keys are left out; one that is
// wrong makes all of them ErrSignature.
func Cosignatures(note, lines string, witnesses []Verifier) (verified string, signed []Signed, err error) {
	c, _, err := splitNote(note)
	if err != nil {
		return "", nil, fmt.Errorf("anchor: %w", err)
	}
	found, err := parseLines(lines)
	if err != nil {
		return "", nil, fmt.Errorf("anchor: cosignatures: %w", err)
	}
	taken := map[string]bool{}
	for _, line := range found {
		s, err := verifyLines(c, []signature{line}, witnesses)
		if err != nil {
			return "", nil, err
		}
		if len(s) == 1 && s[0].Witness && !taken[line.name] {
			taken[line.name] = true
			verified, signed = verified+line.line(), append(signed, s[0])
		}
	}
	return verified, signed, nil
}

func verifyLines(c Checkpoint, lines []signature, keys []Verifier) (signed []Signed, err error) {
	for _, line := range lines {
		for _, key := range keys {
			if !key.signs(c.Origin, line) {
				continue
			}
			at, err := key.verify(c.Body(), line.sig)
			if err != nil {
				return nil, fmt.Errorf("%w: %s", ErrSignature, line.name)
			}
			signed = append(signed, Signed{line.name, key.Witness(), at})
			break
		}
	}
	return signed, nil
}

// signature is a line of a note.
type signature struct {
	name string
	id   [4]byte
	sig  []byte
}

func (s signature) line() string {
	return "— " + s.name + " " + base64.StdEncoding.EncodeToString(append(s.id[:], s.sig...)) + "\n"
}

// splitNote takes a note apart. Only what Body writes is taken as the text: no extension lines, which no monitor reads.
func splitNote(note string) (c Checkpoint, lines []signature, err error) {
	if len(note) > maxNote {
		return c, nil, errors.New("note: too long")
	}
	at := strings.LastIndex(note, "\n\n")
	if at < 0 {
		return c, nil, errors.New("note: no empty line before its signatures")
	}
	body, rest := note[:at+1], note[at+2:]
	origin, size, root := "", "", ""
	if l := strings.SplitN(body, "\n", 4); len(l) == 4 {
		origin, size, root = l[0], l[1], l[2]
	}
	if err := checkName(origin); err != nil {
		return c, nil, fmt.Errorf("note: origin: %w", err)
	}
	c.Origin = origin
	c.Size, err = strconv.ParseUint(size, 10, 64)
	if err != nil {
		return c, nil, errors.New("note: not a size")
	}
	if b, err := base64.StdEncoding.DecodeString(root); err != nil || len(b) != len(c.Root) {
		return c, nil, errors.New("note: not a root")
	} else {
		c.Root = merkle.Hash(b)
	}
	if c.Body() != body {
		return c, nil, errors.New("note: not the text of a checkpoint")
	}
	lines, err = parseLines(rest)
	if err == nil && len(lines) == 0 {
		err = errors.New("note: no signature")
	}
	return c, lines, err
}

func parseLines(text string) (lines []signature, err error) {
	for text != "" {
		line, rest, ended := strings.Cut(text, "\n")
		text = rest
		line, dash := strings.CutPrefix(line, "— ")
		name, encoded, _ := strings.Cut(line, " ")
		b, err := base64.StdEncoding.DecodeString(encoded)
		if !ended || !dash || checkName(name) != nil || err != nil || len(b) < 5 {
			return nil, errors.New("note: not a signature line")
		}
		s := signature{name, [4]byte(b), b[4:]}
		if s.line() != "— "+line+"\n" {
			return nil, errors.New("note: base64 of more than one spelling")
		}
		if lines = append(lines, s); len(lines) > maxSignatures {
			return nil, errors.New("note: too many signatures")
		}
	}
	return lines, nil
}

// checkName holds a key name or origin to signed-note, and keeps it from looking like another text that is signed.
func checkName(name string) error {
	if name == "" || len(name) > 255 || name[0] == '{' || !utf8.ValidString(name) || strings.Contains(name, "+") ||
		strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return fmt.Errorf("%q is not a key name: text without spaces and plus, no brace at its start", name)
	}
	return nil
}
