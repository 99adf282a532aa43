package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// decoded is a bill of materials of this test's own binary.
func decoded(t *testing.T, image, digest string, binaries ...binary) (string, cyclonedx.BOM) {
	t.Helper()
	text, err := bill(image, digest, binaries)
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	return string(text), bom
}

func own(t *testing.T) binary {
	t.Helper()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := read(file, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBinary: the file names the binary by its sum, the standard library by the toolchain,
// and a module with the sum of go.sum.
func TestBinary(t *testing.T) {
	b := own(t)
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	_, bom := decoded(t, "", "", b)
	about := bom.Metadata.Component
	if about.Version != "1.2.3" || about.Name != filepath.Base(os.Args[0]) ||
		(*about.Hashes)[0].Value != hex.EncodeToString(sum[:]) || b.arch != runtime.GOARCH {
		t.Errorf("%+v of %s", about, b.arch)
	}
	found := map[string]cyclonedx.Component{}
	for _, c := range *bom.Components {
		found[c.Name] = c
	}
	if std := found["std"]; std.PackageURL != "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go") {
		t.Errorf("%+v", std)
	}
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	library := found["github.com/CycloneDX/cyclonedx-go"]
	if library.Properties == nil || !strings.Contains(string(sums),
		library.Name+" "+library.Version+" "+(*library.Properties)[0].Value+"\n") {
		t.Errorf("%+v is not in go.sum", library)
	}
}

// TestImage: the image has both binaries, a module that both have once, and every reference leads to a component; the
// order of the arguments and the time change nothing.
func TestImage(t *testing.T) {
	one := own(t)
	two := one
	two.arch, two.sum = "other", strings.Repeat("0", 64)
	const name, digest = "registry.invalid:5000/a/plimsoll:1.2.3", "sha256:" + "ab"
	text, bom := decoded(t, name, digest, one, two)
	if again, _ := decoded(t, name, digest, two, one); again != text {
		t.Error("another order of the binaries makes another file")
	}
	if got, want :=
		bom.Metadata.Component.PackageURL, "pkg:oci/plimsoll@sha256%3Aab?repository_url="+
			"registry.invalid%3A5000%2Fa%2Fplimsoll&tag=1.2.3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	refs := []string{bom.Metadata.Component.BOMRef}
	for _, c := range *bom.Components {
		if slices.Contains(refs, c.BOMRef) {
			t.Errorf("%s is there twice", c.BOMRef)
		}
		refs = append(refs, c.BOMRef)
	}
	needed := map[string]int{}
	for _, d := range *bom.Dependencies {
		for _, ref := range append([]string{d.Ref}, *d.Dependencies...) {
			if !slices.Contains(refs, ref) {
				t.Errorf("nothing is %s", ref)
			}
		}
		needed[d.Ref] = len(*d.Dependencies)
	}
	if needed["image"] != 2 || needed[one.ref()] < 2 || needed[one.ref()] != needed[two.ref()] {
		t.Errorf("%v", needed)
	}
}
