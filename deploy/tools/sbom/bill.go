package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// binary is a program for one architecture, and what was linked into it.
type binary struct {
	name, version, arch string
	sum                 string // SHA-256
	goVersion           string
	modules             []*debug.Module
}

// read takes what the toolchain has recorded in a binary.
func read(file, version string) (binary, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return binary{}, err
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return binary{}, fmt.Errorf("%s: %w", file, err)
	}
	sum := sha256.Sum256(data)
	b := binary{name: filepath.Base(file), version: version, sum: hex.EncodeToString(sum[:]),
		goVersion: strings.TrimPrefix(info.GoVersion, "go"), modules: info.Deps}
	for _, s := range info.Settings {
		if s.Key == "GOARCH" {
			b.arch = s.Value
		}
	}
	return b, nil
}

func (b binary) ref() string { return b.name + "-" + b.arch }

// component is the binary. It is no module that a registry has, and so has no package URL.
func (b binary) component() cyclonedx.Component {
	return cyclonedx.Component{BOMRef: b.ref(), Type: cyclonedx.ComponentTypeApplication, Name: b.name,
		Version:    b.version,
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: b.sum}},
		Properties: &[]cyclonedx.Property{{Name: "plimsoll:arch", Value: b.arch}}}
}

// libraries are the modules of the binary, and the standard library.
func (b binary) libraries() []cyclonedx.Component {
	list := []cyclonedx.Component{library("std", b.goVersion, "")}
	for _, m := range b.modules {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, library(m.Path, m.Version, m.Sum))
	}
	return list
}

// library is a module of the Go module proxy. Its sum is that of go.sum, which is no sum of a file.
func library(path, version, sum string) cyclonedx.Component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", path, url.PathEscape(version))
	c := cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version,
		PackageURL: purl}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "plimsoll:go.sum", Value: sum}}
	}
	return c
}

// bill is the file: about an image, and the binaries in it; or without an image about the one binary. Who needs what
// stands in its dependencies, so that a module that several binaries have is listed once.
func bill(image, digest string, binaries []binary) ([]byte, error) {
	bom := cyclonedx.NewBOM()
	var components []cyclonedx.Component
	var dependencies []cyclonedx.Dependency
	depend := func(ref string, on []cyclonedx.Component) {
		var refs []string
		for _, c := range on {
			refs = append(refs, c.BOMRef)
		}
		slices.Sort(refs)
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: ref, Dependencies: &refs})
	}
	for _, b := range binaries {
		libraries := b.libraries()
		components = append(components, libraries...)
		depend(b.ref(), libraries)
		if image != "" {
			components = append(components, b.component())
		}
	}
	about := binaries[0].component()
	if image != "" {
		about = imageComponent(image, digest)
		var parts []cyclonedx.Component
		for _, b := range binaries {
			parts = append(parts, b.component())
		}
		depend(about.BOMRef, parts)
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	components = slices.CompactFunc(components, func(a, b cyclonedx.Component) bool { return a.BOMRef == b.BOMRef })
	slices.SortFunc(dependencies, func(a, b cyclonedx.Dependency) int { return cmp.Compare(a.Ref, b.Ref) })
	bom.Metadata = &cyclonedx.Metadata{Component: &about}
	bom.Components, bom.Dependencies = &components, &dependencies
	var text bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&text,
		cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return text.Bytes(), err
}

// imageComponent is an image by its name and digest (purl specification, type oci).
func imageComponent(name, digest string) cyclonedx.Component {
	slash := strings.LastIndex(name, "/") // a registry before it may have a port
	last, tag, _ := strings.Cut(name[slash+1:], ":")
	repository := name[:slash+1] + last
	purl := fmt.Sprintf("pkg:oci/%s@%s?repository_url=%s&tag=%s", last, url.QueryEscape(digest),
		url.QueryEscape(repository), url.QueryEscape(tag))
	return cyclonedx.Component{BOMRef: "image", Type: cyclonedx.ComponentTypeContainer, Name: repository, Version: tag,
		PackageURL: purl,
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256,
			Value: strings.TrimPrefix(digest, "sha256:")}}}
}
