package local

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// secrets are made once per data directory and kept in secrets.env, mode 0600.
type secrets struct {
	path   string
	values map[string]string
}

// openSecrets reads the file, if there is one.
func openSecrets(dir string) (*secrets, error) {
	s := &secrets{path: filepath.Join(dir, "secrets.env"), values: map[string]string{}}
	f, err := os.Open(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s: line %d is not NAME=value; mend it, or remove the data directory to start anew", s.path, n)
		}
		s.values[name] = strings.TrimSuffix(strings.TrimPrefix(value, "'"), "'")
	}
	return s, lines.Err()
}

// get is the secret of that name, made when there is none.
func (s *secrets) get(name string) string {
	if s.values[name] == "" {
		b := make([]byte, 24)
		rand.Read(b)
		s.values[name] = base64.RawURLEncoding.EncodeToString(b)
	}
	return s.values[name]
}

// save replaces the file in one step.
func (s *secrets) save() error {
	var b strings.Builder
	b.WriteString("# Secrets of this local platform. Made once; remove the data directory to get new ones.\n")
	for _, name := range secretNames {
		if v := s.values[name]; v != "" {
			if plain.MatchString(v) {
				fmt.Fprintf(&b, "%s=%s\n", name, v)
			} else {
				fmt.Fprintf(&b, "%s='%s'\n", name, v) // a shell may source the file
			}
		}
	}
	return atomicfile.Write(s.path, []byte(b.String()), 0o600)
}

// plain needs no quotes in a shell.
var plain = regexp.MustCompile(`^[\w.@%+/-]+$`)

var secretNames = []string{
	"LOCAL_PASSWORD", "API_AUTH_SECRET", "PAGE_TOKEN_KEY",
	"AUDIT_EMISSION_KEY", "POSTGRES_PASSWORD", "POSTGRES_APP_PASSWORD", "POSTGRES_READER_PASSWORD", "POSTGRES_LEDGER_PASSWORD",
	"S3_ROOT_SECRET", "S3_READER_SECRET", "TOOL_SECRETS_KEY",
	"INTEGRATION_SECRETS_KEY", "CONNECTION_SECRETS_KEY",
}

// category is one of the stores of tenants' secrets.
type category struct {
	name    string   // as in Parameter Store, for functions in processes of their own
	setting string   // how the names of its settings begin
	folder  string   // in the data directory
	needs   []string // that it is behind
	store   secret.Store
}

const (
	tools = iota
	integrations
	connections
)

// openCategories opens the stores, each under a key of its own.
func openCategories(dir string, s *secrets) (all []category, err error) {
	all = []category{
		tools: {name: "tools", setting: "TOOL_SECRETS", folder: "tool-secrets", needs: []string{"secret:tools"}},
		integrations: {name: "integrations", setting: "INTEGRATION_SECRETS", folder: "integration-secrets", needs: []string{"secret:integrations", "secret:integrations:read",
			"secret:webhooks", "secret:webhooks:keep"}},
		connections: {name: "connections", setting: "CONNECTION_SECRETS", folder: "connection-secrets", needs: []string{"secret:connections"}},
	}
	for i, c := range all {
		if all[i].store, err = secret.Dir(filepath.Join(dir, c.folder), s.get(c.setting+"_KEY")); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// prefix and keyID are what Parameter Store has the category under.
func (c category) prefix() string { return "/agentplatform-local/" + c.name }
func (c category) keyID() string  { return functionPrefix + c.name }
