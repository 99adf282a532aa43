package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
)

const (
	module = "plimsoll"
	root   = "../.."
)

// source is one parsed file.
type source struct {
	path string // below the root
	test bool
	file *ast.File
	fset *token.FileSet
	text string
}

// pkg is a folder with Go files, of any build constraint.
type pkg struct {
	dir   string // below the root
	files []source
}

// files are those whose name ends in one of the suffixes.
func files(t *testing.T, suffixes ...string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") && name != "..") &&
			p != root {
			return filepath.SkipDir
		}
		if !d.IsDir() && slices.Contains(suffixes, filepath.Ext(name)) {
			list = append(list, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// packages parses every Go file of the module.
func packages(t *testing.T) []pkg {
	t.Helper()
	dirs := map[string]*pkg{}
	for _, p := range files(t, ".go") {
		if err := add(dirs, p); err != nil {
			t.Fatal(err)
		}
	}
	var list []pkg
	for _, p := range dirs {
		list = append(list, *p)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].dir < list[j].dir })
	if len(list) < 5 {
		t.Fatalf("only %d packages found below %s", len(list), root)
	}
	return list
}

func add(dirs map[string]*pkg, p string) error {
	text, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, p, text, parser.ParseComments)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(root, p)
	if err != nil {
		return err
	}
	dir := filepath.ToSlash(filepath.Dir(rel))
	if dirs[dir] == nil {
		dirs[dir] = &pkg{dir: dir}
	}
	dirs[dir].files = append(dirs[dir].files, source{path: filepath.ToSlash(rel),
		test: strings.HasSuffix(p, "_test.go"), file: file, fset: fset, text: string(text)})
	return nil
}

// code is the package without its tests.
func (p pkg) code() []source {
	var list []source
	for _, s := range p.files {
		if !s.test {
			list = append(list, s)
		}
	}
	return list
}

// imports maps the names by which a file knows its imports to their paths.
func (s source) imports() map[string]string {
	m := map[string]string{}
	for _, i := range s.file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if name == "v2" {
			name = strings.TrimSuffix(path, "/v2")
			name = name[strings.LastIndex(name, "/")+1:]
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		m[name] = path
	}
	return m
}

func (s source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }
