// Package figure draws curves and maps as they stand in a good paper, as SVG and as PNG.
//
// Problem. The same picture is wanted in the docs (SVG, to be compared by a test), on a screen without a browser
// (PNG), and from a command. A plotting library brings its own look and a tree of dependencies for that.
//
// Approach. A Canvas is a list of shapes: lines, areas, marks, text. It is written as SVG, or rasterised by the same
// list, so the two cannot differ in what they show. Lines, Bars and Heat lay out their axes, legends and colours on a
// Canvas. The colours can be told apart by the colour-blind (Okabe and Ito, 2008), and curves also by dashes and marks;
// the map goes from light to dark without a change of hue's order (viridis, reversed).
//
// Known limits. The SVG asks for Helvetica or Arial, the PNG has Go's font, so text differs a little in width.
package figure
