// Command sbom writes a bill of materials of static Go binaries (CycloneDX, JSON): the binaries with their sums, and
// the modules that the toolchain recorded in each of them. The same binaries make the same file, byte for byte: it has
// no time and no serial number.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	image := flag.String("image", "",
		"the image that the binaries are in, REPOSITORY:TAG; without it the file is about the binary")
	digest := flag.String("digest", "", "of the image")
	version := flag.String("version", "", "of the binaries")
	out := flag.String("o", "", "the file to write")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: sbom -version VERSION -o FILE [-image NAME -digest DIGEST] BINARY...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *out == "" || *version == "" || flag.NArg() == 0 || (*image == "") != (*digest == "") || *image == "" &&
		flag.NArg() > 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(*out, *image, *digest, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(out, image, digest, version string, files []string) error {
	var binaries []binary
	for _, file := range files {
		b, err := read(file, version)
		if err != nil {
			return err
		}
		binaries = append(binaries, b)
	}
	text, err := bill(image, digest, binaries)
	if err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o644)
}
