package figure

import (
	"errors"
	"io"
	"path"
	"strings"
)

// Point is a place on a Canvas, in pixels from the top left.
type Point struct{ X, Y float64 }

// Ink is a colour as "#rrggbb".
type Ink string

// The inks of everything that is not data, and of what data are held against.
const (
	black Ink = "#222222"
	grey  Ink = "#666666"
	light Ink = "#e6e6e6"
	white Ink = "#ffffff"
	red   Ink = "#c00000"
)

// Stroke is how a line is drawn. Dash lists the lengths of ink and gap in turn.
type Stroke struct {
	Ink   Ink
	Width float64
	Dash  []float64
}

// Anchor says which part of a text stands at its point.
type Anchor string

// The anchors, as SVG names them.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Font is how a text is set. Up turns it by a quarter to the left.
type Font struct {
	Size   float64
	Ink    Ink
	Anchor Anchor
	Bold   bool
	Up     bool
}

// Canvas is a picture as a list of shapes, the later ones on top.
type Canvas struct {
	Width, Height float64
	Title         string // for those who hear the picture
	shapes        []shape
}

// shape is what can be written in both formats.
type shape interface {
	svg(w *svgWriter)
	png(r *raster)
}

// Line draws through the points.
func (c *Canvas) Line(s Stroke, points ...Point) { c.shapes = append(c.shapes, line{points, s}) }

// Fill paints the area within the points; opacity is in [0,1].
func (c *Canvas) Fill(ink Ink, opacity float64, points ...Point) {
	c.shapes = append(c.shapes, area{points, ink, opacity})
}

// Box paints a rectangle.
func (c *Canvas) Box(ink Ink, x, y, width, height float64) {
	c.Fill(ink, 1, Point{x, y}, Point{x + width, y}, Point{x + width, y + height}, Point{x, y + height})
}

// Text sets a line of text with its base line at the point.
func (c *Canvas) Text(at Point, f Font, s string) { c.shapes = append(c.shapes, text{at, f, s}) }

type line struct {
	points []Point
	stroke Stroke
}

type area struct {
	points  []Point
	ink     Ink
	opacity float64
}

type text struct {
	at   Point
	font Font
	text string
}

// ErrFormat says that a file's name does not tell the format of its picture.
var ErrFormat = errors.New("a picture ends in .svg or .png")

// Known says whether a file's name tells a format of pictures.
func Known(name string) error {
	if e := strings.ToLower(path.Ext(name)); e != ".svg" && e != ".png" {
		return ErrFormat
	}
	return nil
}

// Write writes the picture in the format that the file's name tells.
func (c *Canvas) Write(w io.Writer, name string) error {
	switch strings.ToLower(path.Ext(name)) {
	case ".svg":
		return c.SVG(w)
	case ".png":
		return c.PNG(w)
	}
	return ErrFormat
}

// style is the look of the n-th curve.
type style struct {
	stroke Stroke
	mark   func(at Point, size float64) []Point
}

// styles are told apart by colour, dash and mark.
func styles(n int) style {
	inks := []Ink{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", black}
	dashes := [][]float64{nil, {7, 3}, {2, 3}, {7, 3, 2, 3}}
	marks := []func(Point, float64) []Point{disc, square, triangle, diamond}
	return style{Stroke{inks[n%len(inks)], 1.8, dashes[n%len(dashes)]}, marks[n%len(marks)]}
}

func square(at Point, size float64) []Point {
	s := size * 0.9
	return []Point{{at.X - s, at.Y - s}, {at.X + s, at.Y - s}, {at.X + s, at.Y + s}, {at.X - s, at.Y + s}}
}

func triangle(at Point, size float64) []Point {
	s := size * 1.2
	return []Point{{at.X, at.Y - s}, {at.X + s, at.Y + s*0.8}, {at.X - s, at.Y + s*0.8}}
}

func diamond(at Point, size float64) []Point {
	s := size * 1.25
	return []Point{{at.X, at.Y - s}, {at.X + s, at.Y}, {at.X, at.Y + s}, {at.X - s, at.Y}}
}

// shade is the colour of a figure in [0,1]: viridis (van der Walt and Smith, 2015), from light to dark.
func shade(at float64) (ink Ink, dark bool) {
	steps := []Ink{"#fde725", "#c2df23", "#86d549", "#52c569", "#2ab07f", "#1e9b8a", "#25858e", "#2d708e", "#38588c",
		"#433e85", "#482173", "#440154"}
	i := min(max(int(at*float64(len(steps))), 0), len(steps)-1)
	return steps[i], i >= 5
}
