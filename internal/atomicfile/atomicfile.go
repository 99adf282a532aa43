// Package atomicfile replaces a file whole or not at all.
//
// Problem: a file that is written in place is cut short by a crash or a full disk. One that is renamed before its
// content is on the disk can be found empty after a loss of power.
//
// Approach: write a temporary file beside it, fsync, rename, fsync of the directory.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Suffix ends the name of the temporary file. A crash may leave one; the next Write of the same file replaces it.
const Suffix = ".new"

// Write replaces the file, or makes it. After an error the file is as it was, or the new one.
func Write(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.OpenFile(path+Suffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(path + Suffix) // it takes room
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(path+Suffix, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
