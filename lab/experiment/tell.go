package experiment

import (
	"bytes"
	"fmt"
	"os"

	"plimsoll/internal/report"
)

// Findings are what was measured: a page for people, and their exported fields for programs.
type Findings interface{ WriteText(page *bytes.Buffer) }

// Tell writes findings to standard output, as JSON or for people.
func Tell(f Findings, asJSON bool) error {
	if asJSON {
		return report.WriteJSON(os.Stdout, f)
	}
	var page bytes.Buffer
	f.WriteText(&page)
	_, err := os.Stdout.Write(page.Bytes())
	return err
}

// Say tells of progress, on standard error.
func Say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
