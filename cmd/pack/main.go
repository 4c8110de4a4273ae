// Command pack builds all functions and makes the zips that Lambda runs: dist/<name>.zip, each with one file, bootstrap.
//
// The same source gives the same bytes, on any machine and at any time, so that a deployment changes only functions whose code changed:
// no paths, no version control stamp and no build time go into a binary, and a zip has a fixed time and mode.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/schema"
)

// flags make the binaries small and the same everywhere; -s -w leaves out what only debuggers read.
var flags = []string{"-tags", manifest.Tags, "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"}

// target is the runtime provided.al2023 on arm64.
var target = []string{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"}

func main() {
	dist := flag.String("dist", "dist", "`folder` for the zips; binaries go to its folder bin")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *dist, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dist string, out io.Writer) error {
	rows, err := manifest.Parse(schema.Routes)
	if err != nil {
		return err
	}
	names := make([]string, len(rows.Rows))
	for i, row := range rows.Rows {
		names[i] = row.Name
	}
	began := time.Now()
	fmt.Fprintf(out, "building %d functions for linux/arm64 …\n", len(names))
	if err := build(ctx, filepath.Join(dist, "bin")); err != nil {
		return err
	}
	fmt.Fprintf(out, "built after %s; packing …\n", time.Since(began).Round(time.Second))
	packed, err := pack(ctx, filepath.Join(dist, "bin"), dist, names)
	if err != nil {
		return err
	}
	show(out, packed)
	return nil
}

// build links every function into a folder. One go command does it, so that what they share is compiled once.
func build(ctx context.Context, folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	args := append([]string{"build", "-o", folder + string(filepath.Separator)}, flags...)
	command := exec.CommandContext(ctx, "go", append(args, "./functions/...")...)
	command.Env = append(os.Environ(), target...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}

func show(out io.Writer, all []packed) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "function\tbinary\tzip\tsha256")
	var binaries, zips int64
	for _, p := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.12s\n", p.name, megabytes(p.binary), megabytes(p.zip), p.sum)
		binaries, zips = binaries+p.binary, zips+p.zip
	}
	fmt.Fprintf(table, "%d functions\t%s\t%s\t\n", len(all), megabytes(binaries), megabytes(zips))
	table.Flush()
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
