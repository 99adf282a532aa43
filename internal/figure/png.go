package figure

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// density is the number of dots for a pixel of the Canvas: screens have had two for a decade.
const density = 2

// PNG writes the picture as PNG.
func (c *Canvas) PNG(w io.Writer) error {
	r, err := newRaster(c.Width, c.Height)
	if err != nil {
		return err
	}
	for _, s := range c.shapes {
		s.png(r)
	}
	if r.err != nil {
		return r.err
	}
	if err := png.Encode(w, r.image); err != nil {
		return fmt.Errorf("write PNG: %w", err)
	}
	return nil
}

type raster struct {
	image         *image.RGBA
	regular, bold *opentype.Font
	err           error // the first
}

func newRaster(width, height float64) (*raster, error) {
	r := &raster{image: image.NewRGBA(image.Rect(0, 0, int(math.Ceil(width*density)), int(math.Ceil(height*density))))}
	draw.Draw(r.image, r.image.Bounds(), image.White, image.Point{}, draw.Src)
	var err error
	if r.regular, err = opentype.Parse(goregular.TTF); err == nil {
		r.bold, err = opentype.Parse(gobold.TTF)
	}
	if err != nil {
		return nil, fmt.Errorf("read the font: %w", err)
	}
	return r, nil
}

func (r *raster) rgba(ink Ink, opacity float64) color.Color {
	var c color.NRGBA
	if _, err := fmt.Sscanf(string(ink), "#%02x%02x%02x", &c.R, &c.G, &c.B); err != nil && r.err == nil {
		r.err = fmt.Errorf("ink %q: %w", ink, err)
	}
	c.A = uint8(math.Round(255 * opacity))
	return c
}

// fill paints polygons in one coat. vector.Rasterizer adds up signed areas, so each is turned the same way round.
func (r *raster) fill(c color.Color, polygons ...[]Point) {
	b := r.image.Bounds()
	z := vector.NewRasterizer(b.Dx(), b.Dy())
	for _, points := range polygons {
		n, back := len(points), turn(points) < 0
		for i := range points {
			p := points[i]
			if back {
				p = points[n-1-i]
			}
			x, y := float32(p.X*density), float32(p.Y*density)
			if i == 0 {
				z.MoveTo(x, y)
			} else {
				z.LineTo(x, y)
			}
		}
		z.ClosePath()
	}
	z.Draw(r.image, b, image.NewUniform(c), image.Point{})
}

// turn is twice the signed area.
func turn(points []Point) float64 {
	var sum float64
	for i, p := range points {
		q := points[(i+1)%len(points)]
		sum += p.X*q.Y - q.X*p.Y
	}
	return sum
}

func (a area) png(r *raster) { r.fill(r.rgba(a.ink, a.opacity), a.points) }

func (l line) png(r *raster) {
	half := l.stroke.Width / 2
	var coat [][]Point
	for _, piece := range dashes(l.points, l.stroke.Dash) {
		for i, p := range piece {
			if i > 0 && i < len(piece)-1 {
				coat = append(coat, disc(p, half))
			}
			if i > 0 {
				coat = append(coat, thick(piece[i-1], p, half))
			}
		}
	}
	r.fill(r.rgba(l.stroke.Ink, 1), coat...)
}

// thick is a segment as the rectangle that its ink covers.
func thick(a, b Point, half float64) []Point {
	length := math.Hypot(b.X-a.X, b.Y-a.Y)
	if length == 0 {
		return disc(a, half)
	}
	nx, ny := -(b.Y-a.Y)/length*half, (b.X-a.X)/length*half
	return []Point{{a.X + nx, a.Y + ny}, {b.X + nx, b.Y + ny}, {b.X - nx, b.Y - ny}, {a.X - nx, a.Y - ny}}
}

func disc(at Point, radius float64) []Point {
	const corners = 24
	points := make([]Point, corners)
	for i := range points {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		points[i] = Point{at.X + radius*cos, at.Y + radius*sin}
	}
	return points
}

// dashes cuts a line into its inked pieces.
func dashes(points []Point, pattern []float64) [][]Point {
	if len(pattern) == 0 || len(points) < 2 {
		return [][]Point{points}
	}
	var pieces [][]Point
	piece, left, step := []Point{points[0]}, pattern[0], 0
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		for length := math.Hypot(b.X-a.X, b.Y-a.Y); length > left; length = math.Hypot(b.X-a.X, b.Y-a.Y) {
			a = Point{a.X + (b.X-a.X)*left/length, a.Y + (b.Y-a.Y)*left/length}
			if step%2 == 0 {
				pieces = append(pieces, append(piece, a))
			}
			step++
			piece, left = []Point{a}, pattern[step%len(pattern)]
		}
		left -= math.Hypot(b.X-a.X, b.Y-a.Y)
		piece = append(piece, b)
	}
	if step%2 == 0 {
		pieces = append(pieces, piece)
	}
	return pieces
}

func (t text) png(r *raster) {
	source := r.regular
	if t.font.Bold {
		source = r.bold
	}
	face, err := opentype.NewFace(source, &opentype.FaceOptions{Size: t.font.Size * density, DPI: 72,
		Hinting: font.HintingNone})
	if err != nil {
		if r.err == nil {
			r.err = fmt.Errorf("font of size %g: %w", t.font.Size, err)
		}
		return
	}
	defer face.Close()
	width := float64(font.MeasureString(face, t.text)) / 64 / density
	shift := map[Anchor]float64{Start: 0, Middle: width / 2, End: width}[t.font.Anchor]
	ink := image.NewUniform(r.rgba(t.font.Ink, 1))
	if !t.font.Up {
		d := font.Drawer{Dst: r.image, Src: ink, Face: face, Dot: dot(t.at.X-shift, t.at.Y)}
		d.DrawString(t.text)
		return
	}
	r.upright(face, ink, t, width, shift)
}

// upright sets the text on a strip of its own and turns that by a quarter to the left.
func (r *raster) upright(face font.Face, ink image.Image, t text, width, shift float64) {
	ascent := t.font.Size * 1.5
	strip := image.NewAlpha(image.Rect(0, 0, int(math.Ceil(width*density))+1, int(math.Ceil(2*ascent*density))))
	d := font.Drawer{Dst: strip, Src: image.Opaque, Face: face, Dot: dot(0, ascent)}
	d.DrawString(t.text)
	b := strip.Bounds()
	turned := image.NewAlpha(image.Rect(0, 0, b.Dy(), b.Dx()))
	for y := range b.Dy() {
		for x := range b.Dx() {
			turned.SetAlpha(y, b.Dx()-1-x, strip.AlphaAt(x, y))
		}
	}
	at := image.Pt(int(math.Round((t.at.X-ascent)*density)), int(math.Round((t.at.Y+shift)*density))-b.Dx())
	draw.DrawMask(r.image, turned.Bounds().Add(at), ink, image.Point{}, turned, image.Point{}, draw.Over)
}

func dot(x, y float64) fixed.Point26_6 {
	return fixed.Point26_6{X: fixed.Int26_6(math.Round(x * density * 64)),
		Y: fixed.Int26_6(math.Round(y * density * 64))}
}
