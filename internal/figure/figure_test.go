package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/golden"
)

// example has something of everything: a reversed axis, bands, marks, dashes, a rule, signs that XML reserves.
func example() Lines {
	x := []float64{0.1, 0.3, 0.5, 0.7, 0.9}
	up := Curve{Name: "burst 100 %", X: x, Y: []float64{1, 1, 1.1, 1.6, 4}}
	band := Curve{Name: "a < b & c", X: x, Y: []float64{1, 1.2, 1.4, 2, 3}, Lo: []float64{1, 1.1, 1.3, 1.8, 2.5},
		Hi: []float64{1.1, 1.3, 1.5, 2.2, 3.5}}
	step := Curve{Name: "steps", X: x, Y: []float64{3, 2, 3, 2, 3}, Step: true}
	y := Axis{Label: "E(WCET), periods", Min: 1, Max: 5, Log: true, Reversed: true, Ticks: []float64{1, 1.5, 2, 3, 5}}
	u := Axis{Label: "mean use, %", Min: 0, Max: 1, Percent: true}
	return Lines{Title: "Expected time, by load", Subtitle: "One run for each point.", Note: "Made up.",
		Panels: []Panel{
			{Title: "m = 10", X: u, Y: y, Curves: []Curve{up, band}, Rules: []Rule{{"target", 2}}},
			{Title: "m = 20", X: u, Y: y, Curves: []Curve{up, step}},
		}}
}

func heat() Heat {
	return Heat{Title: "Risk", Subtitle: "by load and number", XLabel: "containers", YLabel: "load",
		X: []string{"5", "10", "20"}, Y: []string{"50 %", "70 %"},
		Values: [][]float64{{1e-2, 1e-4, 1e-5}, {2e-1, 3e-2, 4e-3}}, Cells: [][]string{{"1", "0.01", "0"},
			{"20", "3", "0.4"}}, Lo: 1e-5, Hi: 1, Limit: 1e-3, Key: "above 0.1 %"}
}

func bars() Bars {
	return Bars{Title: "Where the time went", Subtitle: "of what was wanted",
		Parts: []string{"received", "behind a neighbour", "others"},
		Bars: []Bar{{"alone", []float64{1}, "0.2 ms"}, {"burstable, 4 threads", []float64{0.5, 0.375, 0.125}, "3 ms"},
			{"nothing", []float64{0, 0, 0}, ""}},
		X: Axis{Label: "of the time wanted, %", Max: 1, Percent: true}, Texts: "p99", Note: "Made up."}
}

// TestHostileNamesInAPicture: a title is a container's name. Whatever that is, the picture is well formed.
func TestHostileNamesInAPicture(t *testing.T) {
	c := example()
	c.Title, c.Subtitle = "\x1b[2J\x00\xff</title><script>alert(1)</script>&\"'", "\x1b\ufffe<a>"
	var got bytes.Buffer
	if err := c.Draw().Write(&got, "x.svg"); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, got.Bytes())
	if bytes.Contains(got.Bytes(), []byte("<script")) {
		t.Error("a name is an element")
	}
}

// TestSVGGolden holds the pictures against testdata. Look at those that are written anew.
func TestSVGGolden(t *testing.T) {
	for name, c := range map[string]*Canvas{"lines": example().Draw(), "heat": heat().Draw(), "bars": bars().Draw()} {
		var got bytes.Buffer
		if err := c.Write(&got, "x.svg"); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, got.Bytes())
		golden.File(t, name+".svg", got.String())
	}
}

func wellFormed(t *testing.T, data []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
	}
}

// pixel tells the colour of a place of a picture that is drawn by f.
func paint(t *testing.T, f func(c *Canvas)) func(x, y float64) color.RGBA {
	t.Helper()
	c := &Canvas{Width: 60, Height: 40}
	f(c)
	var b bytes.Buffer
	if err := c.Write(&b, "x.PNG"); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds() != image.Rect(0, 0, 60*density, 40*density) {
		t.Fatalf("bounds %v", img.Bounds())
	}
	return func(x, y float64) color.RGBA {
		return color.RGBAModel.Convert(img.At(int(x*density), int(y*density))).(color.RGBA)
	}
}

func TestPNG(t *testing.T) {
	red, white := color.RGBA{255, 0, 0, 255}, color.RGBA{255, 255, 255, 255}
	at := paint(t, func(c *Canvas) {
		c.Line(Stroke{"#ff0000", 4, nil}, Point{10, 10}, Point{50, 10}, Point{50, 30}, Point{30, 30})
		c.Box("#ff0000", 2, 20, 6, 6)
		c.Fill("#ff0000", 0.5, Point{12, 30}, Point{20, 30}, Point{20, 20}, Point{12, 20}) // the other way round
	})
	for _, p := range []struct {
		x, y float64
		want color.RGBA
	}{
		{30, 10, red}, {50, 10, red}, {50, 20, red}, {40, 30, red}, {30, 14, white}, {5, 5, white},
		{4, 22, red}, {9, 22, white}, {16, 25, color.RGBA{255, 127, 127, 255}},
	} {
		if got := at(p.x, p.y); got != p.want {
			t.Errorf("(%g, %g) is %v, want %v", p.x, p.y, got, p.want)
		}
	}
	at = paint(t, func(c *Canvas) {
		c.Line(Stroke{"#ff0000", 4, []float64{10, 5}}, Point{0, 10}, Point{22, 10}, Point{60, 10})
	})
	for x, want := range map[float64]color.RGBA{5: red, 12: white, 17: red, 24: red, 27: white, 32: red} {
		if got := at(x, 10); got != want {
			t.Errorf("dashes: x = %g is %v, want %v", x, got, want)
		}
	}
}

// TestPNGText: a text stands where it is anchored, and an upright one runs upwards.
func TestPNGText(t *testing.T) {
	ink := func(f Font, at Point) (box image.Rectangle) {
		see := paint(t, func(c *Canvas) { c.Text(at, f, "HHH") })
		for y := range 40 {
			for x := range 60 {
				if see(float64(x), float64(y)).G < 128 {
					box = box.Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
		return box
	}
	start := ink(Font{Size: 10, Ink: black, Anchor: Start}, Point{30, 20})
	end := ink(Font{Size: 10, Ink: black, Anchor: End}, Point{30, 20})
	up := ink(Font{Size: 10, Ink: black, Anchor: Middle, Up: true}, Point{30, 20})
	if start.Min.X < 30 || end.Max.X > 30 || start.Max.Y > 21 || start.Dx() < 15 || end.Dx() < 15 {
		t.Errorf("start %v, end %v", start, end)
	}
	if up.Max.X > 31 || up.Dy() < 15 || up.Dx() > 10 || up.Min.Y > 20 || up.Max.Y < 20 {
		t.Errorf("upright %v", up)
	}
}

func TestPNGOfAll(t *testing.T) {
	for _, c := range []*Canvas{example().Draw(), heat().Draw(), bars().Draw()} {
		if err := c.PNG(io.Discard); err != nil {
			t.Error(err)
		}
	}
	c := &Canvas{Width: 10, Height: 10}
	c.Box("red", 0, 0, 5, 5)
	if err := c.PNG(io.Discard); err == nil {
		t.Error("an ink without a number is taken")
	}
}

func TestFormat(t *testing.T) {
	for name, good := range map[string]bool{"a.svg": true, "b/a.PNG": true, "a.pdf": false, "svg": false} {
		if err := Known(name); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
		if err := (&Canvas{Width: 9, Height: 9}).Write(io.Discard, name); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAxis(t *testing.T) {
	for _, tt := range []struct {
		a    Axis
		at   float64
		want float64
	}{
		{Axis{Min: 0, Max: 10}, 2.5, 0.25},
		{Axis{Min: 0, Max: 10, Reversed: true}, 2.5, 0.75},
		{Axis{Min: 1, Max: 100, Log: true}, 10, 0.5},
		{Axis{Min: 1, Max: 100, Log: true}, 0, 0},
		{Axis{Min: 0, Max: 10}, 99, 1},
		{Axis{Min: 3, Max: 3}, 3, 0},
	} {
		if got := tt.a.place(tt.at); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%+v: %g is at %g, want %g", tt.a, tt.at, got, tt.want)
		}
	}
	for _, tt := range []struct {
		a    Axis
		want string
	}{
		{Axis{Min: 0, Max: 1, Percent: true}, "0 20 40 60 80 100"},
		{Axis{Min: 0, Max: 0.9}, "0 0.2 0.4 0.6 0.8"},
		{Axis{Min: 0, Max: 12}, "0 2.5 5 7.5 10"},
		{Axis{Min: 1e-5, Max: 1, Log: true}, "0.00001 0.0001 0.001 0.01 0.1 1"},
		{Axis{Min: -2, Max: 2, Ticks: []float64{-2, 2}}, "\u22122 2"},
	} {
		var got []string
		for _, v := range tt.a.ticks() {
			got = append(got, tt.a.spell(v))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%+v: %q, want %q", tt.a, s, tt.want)
		}
	}
}

// TestPieces: a curve that leaves the frame ends at its edge, and comes back where it does.
func TestPieces(t *testing.T) {
	f := frame{0, 100, 0, 100, Axis{Min: 0, Max: 10}, Axis{Min: 0, Max: 10}}
	for _, tt := range []struct {
		name  string
		curve Curve
		want  [][]Point
	}{
		{"inside", Curve{X: []float64{0, 10}, Y: []float64{0, 10}}, [][]Point{{{0, 100}, {100, 0}}}},
		{"below and back", Curve{X: []float64{0, 2, 4, 6}, Y: []float64{5, -5, -5, 5}},
			[][]Point{{{0, 50}, {10, 100}}, {{50, 100}, {60, 50}}}},
		{"above", Curve{X: []float64{0, 2}, Y: []float64{5, 15}}, [][]Point{{{0, 50}, {10, 0}}}},
		{"never there", Curve{X: []float64{0, 2}, Y: []float64{15, 15}}, nil},
		{"steps", Curve{X: []float64{0, 2, 4}, Y: []float64{5, 5, 7}, Step: true},
			[][]Point{{{0, 50}, {20, 50}, {20, 50}, {40, 50}, {40, 30}}}},
	} {
		if diff := cmp.Diff(tt.want, f.pieces(tt.curve)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	f.y = Axis{Min: 0.01, Max: 1, Log: true}
	want := [][]Point{{{0, 50}, {10, 100}}}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, f.pieces(Curve{X: []float64{0, 2}, Y: []float64{0.1, 0.001}}), near); diff != "" {
		t.Errorf("logarithmic: %s", diff)
	}
	if got := f.pieces(Curve{X: []float64{0, 2}, Y: []float64{0.1, 0}}); len(got) != 1 ||
		!(got[0][1].X > 0 && got[0][1].X < 20) {
		t.Errorf("to nothing: %v", got)
	}
}
