package figure

// Curve is one line of a panel. Lo and Hi, where given, are the ends of its interval.
type Curve struct {
	Name   string
	X, Y   []float64
	Lo, Hi []float64
	Step   bool // each value lasts until the next
	Bare   bool // without marks: too many points for them
}

// Rule is a horizontal line that a curve is held against.
type Rule struct {
	Name string
	Y    float64
}

// Panel is one pair of axes. Beside the first panel of a row, one says what its y axis is only where that is another.
type Panel struct {
	Title  string
	X, Y   Axis
	Curves []Curve
	Rules  []Rule
}

// Lines is a row of panels. A curve of one name looks the same in all.
type Lines struct {
	Title    string
	Subtitle string
	Panels   []Panel
	Note     string // below, in small type
}

// The measures, in pixels.
const (
	width, height = 900.0, 440.0
	left, right   = 74.0, 24.0
	gap           = 32.0
	top, bottom   = 126.0, 366.0
	markSize      = 3.2
	legendRow     = 17.0
)

// frame is where the data of one panel stands.
type frame struct {
	left, right, top, bottom float64
	x, y                     Axis
}

func (f frame) at(x, y float64) Point {
	return Point{f.left + (f.right-f.left)*f.x.place(x), f.bottom - (f.bottom-f.top)*f.y.place(y)}
}

// Draw lays the row out.
func (l Lines) Draw() *Canvas {
	c := &Canvas{Width: width, Height: height, Title: l.Title}
	heading(c, l.Title, l.Subtitle)
	names := l.names()
	l.legend(c, names)
	n, space := float64(len(l.Panels)), gap
	for i := range l.Panels {
		if i > 0 && l.named(i) {
			space = left // for its figures
		}
	}
	each := (width - left - right - space*(n-1)) / n
	for i, p := range l.Panels {
		f := frame{left + float64(i)*(each+space), left + float64(i)*(each+space) + each, top, bottom, p.X, p.Y}
		axes(c, f, l.named(i))
		if p.Title != "" {
			c.Text(Point{(f.left + f.right) / 2, top - 10}, Font{Size: 13, Ink: black, Anchor: Middle, Bold: true},
				p.Title)
		}
		for _, r := range p.Rules {
			rule(c, f, r)
		}
		for _, curve := range p.Curves {
			trace(c, f, curve, curve.style(names[curve.Name]))
		}
		for _, r := range p.Rules {
			r.name(c, f)
		}
	}
	c.Text(Point{left, height - 12}, Font{Size: 11, Ink: grey, Anchor: Start}, l.Note)
	return c
}

// named says whether a panel tells its y axis.
func (l Lines) named(i int) bool { return i == 0 || l.Panels[i].Y.Label != l.Panels[0].Y.Label }

// names numbers the curves by first appearance.
func (l Lines) names() map[string]int {
	names := map[string]int{}
	for _, p := range l.Panels {
		for _, c := range p.Curves {
			if _, known := names[c.Name]; !known {
				names[c.Name] = len(names)
			}
		}
	}
	return names
}

func heading(c *Canvas, title, subtitle string) {
	c.Text(Point{left, 30}, Font{Size: 17, Ink: black, Anchor: Start, Bold: true}, title)
	c.Text(Point{left, 51}, Font{Size: 12.5, Ink: grey, Anchor: Start}, subtitle)
}

// legend shows each curve with its name, in rows. A character is taken as 7 pixels wide, which leaves room.
func (l Lines) legend(c *Canvas, names map[string]int) {
	curves := make([]Curve, len(names))
	for _, p := range l.Panels {
		for _, curve := range p.Curves {
			curves[names[curve.Name]] = curve
		}
	}
	x, y := left, 78.0
	for i, curve := range curves {
		if curve.Name == "" {
			continue
		}
		s, long := curve.style(i), 41+7*float64(len([]rune(curve.Name)))
		if x > left && x+long > width-right {
			x, y = left, y+legendRow
		}
		c.Line(s.stroke, Point{x, y - 4}, Point{x + 34, y - 4})
		if curve.marked() {
			c.Fill(s.stroke.Ink, 1, s.mark(Point{x + 17, y - 4}, markSize)...)
		}
		c.Text(Point{x + 41, y}, Font{Size: 12.5, Ink: black, Anchor: Start}, curve.Name)
		x += long + 22
	}
}

func (c Curve) marked() bool { return !c.Bare && !c.Step }

// style is that of the n-th curve; steps are solid, for dashes do not show where they are short.
func (c Curve) style(n int) style {
	s := styles(n)
	if c.Step {
		s.stroke.Dash, s.stroke.Width = nil, 2.4
	}
	if c.Bare {
		s.stroke.Width = 1.1
	}
	return s
}

func axes(c *Canvas, f frame, named bool) {
	thin, axis := Stroke{Ink: light, Width: 1}, Stroke{Ink: black, Width: 1}
	label := Font{Size: 11.5, Ink: black, Anchor: Middle}
	for _, v := range f.y.ticks() {
		y := f.at(f.x.Min, v).Y
		c.Line(thin, Point{f.left, y}, Point{f.right, y})
		c.Line(axis, Point{f.left - 4, y}, Point{f.left, y})
		if named {
			c.Text(Point{f.left - 8, y + 4}, Font{Size: 11.5, Ink: black, Anchor: End}, f.y.spell(v))
		}
	}
	for _, v := range f.x.ticks() {
		x := f.at(v, f.y.Min).X
		c.Line(thin, Point{x, f.top}, Point{x, f.bottom})
		c.Line(axis, Point{x, f.bottom}, Point{x, f.bottom + 4})
		c.Text(Point{x, f.bottom + 18}, label, f.x.spell(v))
	}
	c.Line(axis, Point{f.left, f.top}, Point{f.left, f.bottom}, Point{f.right, f.bottom})
	c.Text(Point{(f.left + f.right) / 2, f.bottom + 36}, Font{Size: 12.5, Ink: black, Anchor: Middle}, f.x.Label)
	if named {
		c.Text(Point{f.left - 50, (f.top + f.bottom) / 2}, Font{Size: 12.5, Ink: black, Anchor: Middle, Up: true},
			f.y.Label)
	}
}

func rule(c *Canvas, f frame, r Rule) {
	y := f.at(f.x.Min, r.Y).Y
	c.Line(Stroke{Ink: red, Width: 1, Dash: []float64{4, 3}}, Point{f.left, y}, Point{f.right, y})
}

// name writes what a rule is, on a ground of its own: curves may run there.
func (r Rule) name(c *Canvas, f frame) {
	y, long := f.at(f.x.Min, r.Y).Y, 6.5*float64(len([]rune(r.Name)))+6
	c.Fill(white, 0.85, Point{f.right - long - 2, y - 17}, Point{f.right - 1, y - 17}, Point{f.right - 1, y - 2},
		Point{f.right - long - 2, y - 2})
	c.Text(Point{f.right - 4, y - 5}, Font{Size: 11, Ink: red, Anchor: End}, r.Name)
}

func trace(c *Canvas, f frame, curve Curve, s style) {
	if len(curve.Lo) > 0 {
		var band []Point
		for i, x := range curve.X {
			band = append(band, f.at(x, curve.Hi[i]))
		}
		for i := len(curve.X) - 1; i >= 0; i-- {
			band = append(band, f.at(curve.X[i], curve.Lo[i]))
		}
		c.Fill(s.stroke.Ink, 0.15, band...)
	}
	for _, points := range f.pieces(curve) {
		c.Line(s.stroke, points...)
	}
	for i, x := range curve.X {
		if y := curve.Y[i]; curve.marked() && f.y.holds(y) {
			c.Fill(s.stroke.Ink, 1, s.mark(f.at(x, y), markSize)...)
		}
	}
}

// pieces are the parts of a curve within the frame: where it leaves, it ends at the edge.
func (f frame) pieces(curve Curve) [][]Point {
	var list [][]Point
	var piece []Point
	add := func(x, y float64) { piece = append(piece, f.at(x, y)) }
	for i, x := range curve.X {
		y, in := curve.Y[i], f.y.holds(curve.Y[i])
		if i > 0 && in != f.y.holds(curve.Y[i-1]) {
			x0, y0 := curve.X[i-1], curve.Y[i-1]
			edge := f.y.Max
			if min(y0, y) < f.y.Min {
				edge = f.y.Min
			}
			add(x0+(x-x0)*f.y.part(y0, y, edge), edge)
		}
		if in {
			if curve.Step && len(piece) > 0 {
				piece = append(piece, Point{f.at(x, y).X, piece[len(piece)-1].Y})
			}
			add(x, y)
		} else if len(piece) > 0 {
			list, piece = append(list, piece), nil
		}
	}
	if len(piece) > 0 {
		list = append(list, piece)
	}
	return list
}
