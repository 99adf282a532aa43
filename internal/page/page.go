// Package page holds the page that `plimsoll serve` shows: plain HTML, CSS and JavaScript modules, as they are in the
// repository. There is no build step. uPlot (MIT, assets/uplot.LICENSE.txt) draws the strip;
// vendor.sh copies it from npm.
//
// Problem: names on the page are chosen by tenants, and a node may have a thousand containers that change each second.
//
// Approach: the server's Content-Security-Policy takes scripts and styles from this server only. A name reaches the
// document as a text node, never as HTML. The server sends changed rows only, and the table holds elements only for the
// rows in sight.
//
// Known limits: a browser older than 2023 does not know the CSS that is used here.
package page

import (
	"embed"
	"io/fs"
)

//go:embed index.html assets
var files embed.FS

// Files are index.html and assets/.
func Files() fs.FS { return files }
