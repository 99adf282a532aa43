// Command image packs static binaries, a folder of them an architecture, into an OCI archive: no registry and no engine
// is asked. The same binaries make the same archive, byte for byte. It prints the digest of the image.
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
	out := flag.String("o", "", "the archive to write")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: image -name NAME -o FILE ARCHITECTURE=FOLDER...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *name == "" || *out == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	digest, err := pack(*name, *out, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

// pack writes the archive, and returns the digest by which a registry knows the image.
func pack(name, out string, folders []string) (digest string, err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arg := range folders {
		arch, folder, ok := strings.Cut(arg, "=")
		if !ok {
			return "", fmt.Errorf("%q is not ARCHITECTURE=FOLDER", arg)
		}
		image, err := imageOf(arch, folder)
		if err != nil {
			return "", fmt.Errorf("%s: %w", arg, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	hash, err := index.Digest()
	if err != nil {
		return "", err
	}
	return hash.String(), archive(index, name, out)
}

// imageOf is the image of one architecture: the binaries of a folder, and nothing else.
func imageOf(arch, folder string) (v1.Image, error) {
	content, err := layerOf(folder)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	},
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer,
		History: v1.History{CreatedBy: "make image", Created: v1.Time{Time: epoch()}}})
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
	return mutate.ConfigFile(image, config)
}

func epoch() time.Time { return time.Unix(0, 0).UTC() }

// layerOf is a tar of a folder's files as executables of root's, in the order of their names.
func layerOf(folder string) ([]byte, error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err == nil {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file.Name(), Mode: 0o755,
				Size: int64(len(data)), ModTime: epoch(), Format: tar.FormatPAX})
		}
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			return nil, err
		}
	}
	err = w.Close() // it writes the end of the tar
	return content.Bytes(), err
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
		// containerd reads the first, skopeo the second
		"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}))
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
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)),
			ModTime: epoch()})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	return errors.Join(err, w.Close())
}
