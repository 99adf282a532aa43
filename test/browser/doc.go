// Package browser tests the page of `plimsoll serve` in a real browser, Debian's Chromium: first against a fake of the
// server (a thousand containers, hostile names, a server that hangs), then against a real agent with a really throttled
// group. `bash test/tiers.sh browser` runs it; -figures=docs/figures also writes the pictures of the documentation.
package browser
