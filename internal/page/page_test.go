package page

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestVendored: the committed copy of uPlot is that of the npm package. vendor.sh wrote the sums.
func TestVendored(t *testing.T) {
	sums, err := os.ReadFile("uplot.sha256")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := fs.ReadFile(Files(), path.Join("assets", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != want {
			t.Errorf("assets/%s is not the file of the npm package; hint: bash internal/page/vendor.sh", name)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d files in uplot.sha256, want uPlot's script, style and licence", n)
	}
}

// TestNothingInline: the policy would refuse inline scripts, inline styles and other servers; each file that is loaded
// is there. Names reach the document as text: no module may parse HTML.
// What is written before the agent is asked names no command.
func TestNothingInline(t *testing.T) {
	parses := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|setAttribute\('style'`)
	inline := regexp.MustCompile(
		`(?i)<script(\s+type="module"|\s+defer)*\s*>|<style|\sstyle=|\son[a-z]+=|https?://|javascript:`)
	loads := regexp.MustCompile(`(?:src|href)="/([^"#]+)"|from '\./([^']+)'`)
	err := fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "uplot.") {
			return err
		}
		data, err := fs.ReadFile(Files(), name)
		if err != nil {
			return err
		}
		text := string(data)
		for _, bad := range parses.FindAllString(text, -1) {
			t.Errorf("%s: %s", name, bad)
		}
		if path.Ext(name) == ".html" {
			if strings.Contains(text, "<code>plimsoll") {
				t.Errorf("%s names a command, without the flags that find this agent", name)
			}
			for _, bad := range inline.FindAllString(text, -1) {
				t.Errorf("%s: %s", name, bad)
			}
		}
		for _, m := range loads.FindAllStringSubmatch(text, -1) {
			file := m[1]
			if m[2] != "" {
				file = path.Join("assets", m[2])
			}
			if strings.HasPrefix(file, "api/") {
				continue
			}
			if _, err := fs.Stat(Files(), file); err != nil {
				t.Errorf("%s loads %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
