package pool

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
)

// session is one sign-in: what its refresh token stands for.
type session struct {
	Origin   string `json:"origin_jti"`   // names the session in every token of it
	Refresh  string `json:"refresh_hash"` // lower-case hex SHA-256 of the refresh token
	Sub      string `json:"sub"`
	EventID  string `json:"event_id"`
	Scope    string `json:"scope"`
	Hosted   bool   `json:"hosted"`    // signed in through the hosted UI, else through the wire API
	AuthTime int64  `json:"auth_time"` // unix seconds
	Expires  int64  `json:"expires"`   // unix seconds
}

// sessions is who is signed in: in memory, and in a journal of one JSON line per sign-in and per sign-out.
type sessions struct {
	mu       sync.Mutex
	file     *os.File
	size     int64 // bytes of whole lines in file
	byOrigin map[string]session
	byHash   map[string]string // refresh hash to origin
}

// line is a line of the journal: a session that began, or the origin of one that ended.
type line struct {
	Begin *session `json:"begin,omitempty"`
	End   string   `json:"end,omitempty"`
}

// openSessions reads the journal and rewrites it without what has ended or expired.
func openSessions(path string, now time.Time) (*sessions, error) {
	s := &sessions{byOrigin: map[string]session{}, byHash: map[string]string{}}
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("identity pool: %w", err)
	}
	for n := 1; len(raw) > 0; n++ {
		text, rest, whole := bytes.Cut(raw, []byte("\n"))
		if raw = rest; !whole {
			break // torn by a crash: that sign-in was never answered
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil || (l.Begin == nil) == (l.End == "") {
			return nil, fmt.Errorf("identity pool: line %d of %s is damaged: remove the file to sign everybody out", n, path)
		}
		s.apply(l)
	}
	var live bytes.Buffer
	for origin, x := range s.byOrigin {
		if x.Expires <= now.Unix() {
			s.apply(line{End: origin})
			continue
		}
		if err := json.NewEncoder(&live).Encode(line{Begin: &x}); err != nil {
			return nil, err
		}
	}
	if err := atomicfile.Write(path, live.Bytes(), 0o600); err != nil {
		return nil, err
	}
	if s.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, fmt.Errorf("identity pool: %w", err)
	}
	s.size = int64(live.Len())
	return s, nil
}

func (s *sessions) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Close()
}

func (s *sessions) apply(l line) {
	if l.Begin != nil {
		s.byOrigin[l.Begin.Origin] = *l.Begin
		s.byHash[l.Begin.Refresh] = l.Begin.Origin
		return
	}
	delete(s.byHash, s.byOrigin[l.End].Refresh)
	delete(s.byOrigin, l.End)
}

// record writes the lines, then applies them. A write that fails leaves no half line behind.
func (s *sessions) record(lines ...line) error {
	var b bytes.Buffer
	for _, l := range lines {
		if err := json.NewEncoder(&b).Encode(l); err != nil {
			return err
		}
	}
	if _, err := s.file.Write(b.Bytes()); err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(b.Len())
	for _, l := range lines {
		s.apply(l)
	}
	return nil
}

// begin stores x under a fresh refresh token, which is returned and kept nowhere.
func (s *sessions) begin(x session) (string, error) {
	token := base64.RawURLEncoding.EncodeToString(randomBytes(48))
	x.Refresh = hashToken(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	return token, s.record(line{Begin: &x})
}

// byToken is the session of a refresh token.
func (s *sessions) byToken(refresh string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.byOrigin[s.byHash[hashToken(refresh)]]
	return x, ok
}

// live reports whether the session still is.
func (s *sessions) live(origin string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.byOrigin[origin]
	return ok
}

// end ends the sessions that match, on disk before the call returns.
func (s *sessions) end(match func(session) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []line
	for origin, x := range s.byOrigin {
		if match(x) {
			lines = append(lines, line{End: origin})
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if err := s.record(lines...); err != nil {
		return err
	}
	return s.file.Sync() // a sign-out that a power cut undoes would be worse than a lost sign-in
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
