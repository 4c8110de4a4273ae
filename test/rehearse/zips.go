package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/schema"
)

// pack makes the functions' zips, unless those that are there are younger than all they are made of.
func pack(ctx context.Context, out io.Writer, root, dist string) error {
	current, err := packed(root, dist)
	if err != nil || current {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "run", "-buildvcs=false", "./cmd/pack", "-dist", dist)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, io.Discard, out
	fmt.Fprintln(out, "building the functions for Lambda … (the first time takes a few minutes)")
	return cmd.Run()
}

func packed(root, dist string) (bool, error) {
	rows, err := manifest.Parse(schema.Routes)
	if err != nil {
		return false, err
	}
	oldest := time.Now()
	for _, row := range rows.Rows {
		info, err := os.Stat(filepath.Join(dist, row.Name+".zip"))
		if err != nil {
			return false, nil //nolint:nilerr // one that is missing is made
		}
		if info.ModTime().Before(oldest) {
			oldest = info.ModTime()
		}
	}
	for _, top := range []string{"functions", "pkg", "schema", "go.mod"} {
		younger := false
		err := filepath.WalkDir(filepath.Join(root, top), func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.ModTime().After(oldest) {
				younger = true
				return fs.SkipAll
			}
			return err
		})
		if err != nil || younger {
			return false, err
		}
	}
	return true, nil
}
