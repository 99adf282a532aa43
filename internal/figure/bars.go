package figure

// Bar is one bar: parts from the left to the right, and what is written behind it.
type Bar struct {
	Name  string
	Parts []float64
	Text  string
}

// Bars is a list of horizontal bars, the first on top. Parts of one place look the same in all.
type Bars struct {
	Title    string
	Subtitle string
	Parts    []string // what the parts are
	Bars     []Bar
	X        Axis
	Texts    string // what is written behind the bars
	Note     string
}

const (
	barNames  = 208.0 // room for the names
	barTexts  = 236.0 // and for the texts
	barHeight = 22.0
)

// Draw lays the bars out.
func (b Bars) Draw() *Canvas {
	f := frame{left: barNames, right: width - barTexts, top: 104, bottom: 104 + barHeight*float64(len(b.Bars)), x: b.X,
		y: Axis{Max: 1, Ticks: []float64{}}}
	c := &Canvas{Width: width, Height: f.bottom + 74, Title: b.Title}
	heading(c, b.Title, b.Subtitle)
	b.legend(c)
	c.Text(Point{f.right + 12, f.top - 8}, Font{Size: 11.5, Ink: grey, Anchor: Start}, b.Texts)
	axes(c, f, false)
	for i, bar := range b.Bars {
		top, sum := f.top+barHeight*float64(i), 0.0
		c.Text(Point{f.left - 8, top + 15}, Font{Size: 11.5, Ink: black, Anchor: End}, bar.Name)
		for part, v := range bar.Parts {
			from, to := f.at(sum, 0).X, f.at(sum+v, 0).X
			if sum += v; to > from {
				c.Box(styles(part).stroke.Ink, from, top+4, to-from, barHeight-8)
			}
		}
		c.Text(Point{f.right + 12, top + 15}, Font{Size: 11.5, Ink: black, Anchor: Start}, bar.Text)
	}
	c.Text(Point{left, c.Height - 14}, Font{Size: 11, Ink: grey, Anchor: Start}, b.Note)
	return c
}

// legend shows what the parts are. A character is taken as 7 pixels wide, as in that of lines.
func (b Bars) legend(c *Canvas) {
	x := left
	for i, name := range b.Parts {
		c.Box(styles(i).stroke.Ink, x, 68, 12, 12)
		c.Text(Point{x + 18, 78}, Font{Size: 12.5, Ink: black, Anchor: Start}, name)
		x += 18 + 7*float64(len([]rune(name))) + 20
	}
}
