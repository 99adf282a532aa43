package printable

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"web-1":             "web-1",
		"größe 例 😀":         "größe 例 😀",
		"\x1b[2Jx":          "\uFFFD[2Jx",
		"a\nb\tc\r":         "a\uFFFDb\uFFFDc\uFFFD",
		"\u202etxt.exe":     "\uFFFDtxt.exe",
		"\u009b31m":         "\uFFFD31m",
		"a\u2028b\u200bc":   "a\uFFFDb\uFFFDc",
		"\xff\x7f":          "\uFFFD\uFFFD",
		"%s%n %!s(MISSING)": "%s%n %!s(MISSING)",
		"":                  "",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := string(Lines([]byte("a\tb\n\x1b[0mc\r"))); got != "a\tb\n\uFFFD[0mc\uFFFD" {
		t.Errorf("lines: %q", got)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"short", 5, "short"}, {"longer", 5, "lo..."}, {"üüü", 6, "üüü"}, {"üüüü", 6, "ü..."}, {"longer", 3, "..."},
		{"", 0, ""},
	} {
		if got := Cut(c.in, c.most); got != c.want {
			t.Errorf("%q, %d: %q, want %q", c.in, c.most, got, c.want)
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("\x1b\x1b\x1b\x1b", 10)
	f.Add("ü\u202e\xff", 4)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = max(3, most%1000)
		got := Excerpt(s, most)
		if len(got) > most || !utf8.ValidString(got) ||
			strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q, %d: %q", s, most, got)
		}
	})
}

// What JSON writes prints, and is the same text to a program.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{"plain", "größe 😀", "\u009b\u202e\x7f", "\U000e0001 tag", "\xff", "\uFFFD", `\ "`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		data, err := json.Marshal([]string{s})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if n, err := JSON(&b).Write(data); n != len(data) || err != nil {
			t.Fatalf("%d of %d bytes, %v", n, len(data), err)
		}
		var want, got []string
		if err := errors.Join(json.Unmarshal(data, &want), json.Unmarshal(b.Bytes(), &got)); err != nil ||
			want[0] != got[0] {
			t.Errorf("%q: %q, %v", want, b.String(), err)
		}
		if bytes.ContainsFunc(b.Bytes(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q: %q", s, b.String())
		}
	})
}

// What no encoder writes is no longer the same, but prints.
func TestJSONThatIsNoUTF8(t *testing.T) {
	var b bytes.Buffer
	if _, err := JSON(&b).Write([]byte("\"\xff\"")); err != nil || b.String() != `"\ufffd"` {
		t.Errorf("%q, %v", b.String(), err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestJSONToABrokenWriter(t *testing.T) {
	if n, err := JSON(broken{}).Write([]byte("{}")); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}
