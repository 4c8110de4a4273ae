// Package layout_test holds the architecture: what tree, manifest, schema, imports and documents promise each other, each promise a
// test, each test a table that reads as its documentation. A failure names the file and what it should say instead.
//
// The promises in one breath: every function is one manifest row, one folder, one table entry and one constructor that uses exactly
// what its row declares (manifest_test.go). Every field of the schema is answered by exactly one place (schema_test.go), and every route of
// the REST API is an operation of its contract (openapi_test.go). Every function in a state machine is a row that says so (workflow_test.go). Every package imports only what lies below it (imports_test.go), and
// functions link nothing that makes them large (linked_test.go). Documents and migrations stay true (documents_test.go, code_test.go).
package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/schema"
)

const (
	module = "github.com/agentplatform/agentplatform"
	root   = "../.." // a test runs in its package's folder
)

// made are folders that hold nothing which belongs to the repository.
var made = map[string]bool{".git": true, ".local": true, "dist": true, "node_modules": true, ".terraform": true, ".aws-sam": true, ".aws-sam-iacs": true}

// files are the repository's files, by path from its root.
var files = sync.OnceValues(func() (found []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && made[entry.Name()]:
			return fs.SkipDir
		case entry.Type().IsRegular():
			found = append(found, name)
		}
		return nil
	})
	return found, err
})

// source is one Go file.
type source struct {
	path string // from the repository's root
	ast  *ast.File
}

func (s source) folder() string { return path.Dir(s.path) }
func (s source) test() bool     { return strings.HasSuffix(s.path, "_test.go") }

// imports are the paths the file imports, each with the name it goes by in the file.
func (s source) imports() map[string]string {
	names := map[string]string{}
	for _, i := range s.ast.Imports {
		imported := strings.Trim(i.Path.Value, `"`)
		names[imported] = path.Base(imported)
		if i.Name != nil {
			names[imported] = i.Name.Name
		}
	}
	return names
}

// parsed are the repository's Go files.
var parsed = sync.OnceValues(func() ([]source, error) {
	names, err := files()
	if err != nil {
		return nil, err
	}
	var sources []source
	for _, name := range names {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "/testdata/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{name, file})
	}
	return sources, nil
})

func sources(t *testing.T) []source {
	t.Helper()
	found, err := parsed()
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

func paths(t *testing.T) []string {
	t.Helper()
	found, err := files()
	require.NoError(t, err)
	return found
}

func rows(t *testing.T) manifest.Manifest {
	t.Helper()
	m, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	require.NotEmpty(t, m.Rows)
	return m
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}
