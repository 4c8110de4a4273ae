package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// written is the time that every file in a zip carries: the earliest that the format can hold.
var written = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// packed is one zip: sizes in bytes, and the hex SHA-256 of the zip.
type packed struct {
	name, sum   string
	binary, zip int64
}

// pack makes out/<name>.zip of bin/<name> for every name, in their order, and removes the zips of functions that are no more.
func pack(ctx context.Context, bin, out string, names []string) ([]packed, error) {
	if err := removeOthers(out, names); err != nil {
		return nil, err
	}
	all := make([]packed, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			all[i], err = packOne(filepath.Join(bin, name), filepath.Join(out, name+".zip"))
			all[i].name = name
			return err
		})
	}
	return all, group.Wait()
}

func removeOthers(out string, names []string) error {
	zips, err := filepath.Glob(filepath.Join(out, "*.zip"))
	if err != nil {
		return err
	}
	for _, name := range zips {
		if !slices.Contains(names, strings.TrimSuffix(filepath.Base(name), ".zip")) {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// packOne makes one zip. It appears under its name only when it is whole.
func packOne(binary, name string) (packed, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return packed{}, err
	}
	var zipped bytes.Buffer
	if err := bootstrap(&zipped, program); err != nil {
		return packed{}, err
	}
	if err := os.WriteFile(name+".part", zipped.Bytes(), 0o644); err != nil {
		return packed{}, err
	}
	sum := sha256.Sum256(zipped.Bytes())
	return packed{sum: hex.EncodeToString(sum[:]), binary: int64(len(program)), zip: int64(zipped.Len())}, os.Rename(name+".part", name)
}

// bootstrap writes the zip: one file of the name that the runtime starts, which anybody may run.
func bootstrap(to io.Writer, program []byte) error {
	archive := zip.NewWriter(to)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate, Modified: written}
	header.SetMode(0o755)
	file, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := file.Write(program); err != nil {
		return err
	}
	return archive.Close()
}
