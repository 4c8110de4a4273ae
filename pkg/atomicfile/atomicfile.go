// Package atomicfile replaces a file in one step: whoever reads it finds the old one or the new one, whole, also after a crash.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Unfinished begins the names of files that are being written, beside the one that they are to replace. Those of processes that died stay.
const Unfinished = ".new-"

// Write puts content at path. The folder must be there; the file survives a crash once Write has returned.
func Write(path string, content []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, Unfinished+"*") // mode 0600: a secret is never readable for others meanwhile
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes what was renamed or removed in a folder survive a crash.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
