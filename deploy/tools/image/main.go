// Command image packs static binaries, one an architecture, into an OCI archive: no registry and no engine is asked. The
// same binaries make the same archive, byte for byte.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	name := flag.String("name", "", "name of the image, REPOSITORY:TAG")
	revision := flag.String("revision", "", "of the sources, for the label org.opencontainers.image.revision")
	out := flag.String("o", "", "the archive to write")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: image -name NAME -o FILE ARCHITECTURE=BINARY...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *name == "" || *out == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := pack(*name, *revision, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func pack(name, revision, out string, binaries []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arg := range binaries {
		arch, file, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCHITECTURE=BINARY", arg)
		}
		image, err := imageOf(arch, file, revision)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	return archive(index, name, out)
}

// imageOf is the image of one architecture: the binary, and nothing else.
func imageOf(arch, file, revision string) (v1.Image, error) {
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	content, err := layerOf(map[string][]byte{"plimsoll": binary})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "make image", Created: v1.Time{Time: epoch()}}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: epoch()}
	config.Config.Entrypoint, config.Config.User = []string{"/plimsoll"}, "0:0"
	if revision != "" {
		config.Config.Labels = map[string]string{"org.opencontainers.image.revision": revision}
	}
	return mutate.ConfigFile(image, config)
}

func epoch() time.Time { return time.Unix(0, 0).UTC() }

// layerOf is a tar of executables of root's.
func layerOf(files map[string][]byte) ([]byte, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for name, data := range files {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(data)), ModTime: epoch(), Format: tar.FormatPAX})
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return nil, err
		}
	}
	return content.Bytes(), w.Close()
}

// archive writes an OCI image layout as a tar, files in the order of their names.
func archive(index v1.ImageIndex, name, out string) error {
	dir, err := os.MkdirTemp(filepath.Dir(out), "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	top, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	err = top.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag})) // containerd reads the first, skopeo the second
	if err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(tarOf(f, dir), f.Close())
}

func tarOf(to io.Writer, dir string) error {
	w := tar.NewWriter(to)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: epoch()})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	return errors.Join(err, w.Close())
}
