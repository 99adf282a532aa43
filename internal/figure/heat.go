package figure

import "math"

// Heat is a map of figures over two others: a cell for each pair, darker where the figure is larger.
type Heat struct {
	Title    string
	Subtitle string
	XLabel   string
	YLabel   string
	X, Y     []string    // of the columns, and of the rows from the bottom
	Values   [][]float64 // by row and column
	Cells    [][]string  // what is written into them
	Lo, Hi   float64     // the ends of the scale, which is logarithmic
	Limit    float64     // cells above and below it are parted by a line; 0: none
	Key      string      // what the line says
	Note     string
}

// Draw lays the map out.
func (h Heat) Draw() *Canvas {
	c := &Canvas{Width: width, Height: 96 + 30*float64(len(h.Y)) + 76, Title: h.Title}
	heading(c, h.Title, h.Subtitle)
	f := frame{left: left, right: width - right, top: 96, bottom: 96 + 30*float64(len(h.Y))}
	w, t := (f.right-f.left)/float64(len(h.X)), 30.0
	for row, values := range h.Values {
		y := f.bottom - t*float64(row+1)
		c.Text(Point{f.left - 8, y + t/2 + 4}, Font{Size: 11.5, Ink: black, Anchor: End}, h.Y[row])
		for column, v := range values {
			ink, dark := shade(h.place(v))
			x := f.left + w*float64(column)
			c.Box(ink, x, y, w, t)
			on := black
			if dark {
				on = white
			}
			c.Text(Point{x + w/2, y + t/2 + 4}, Font{Size: 11.5, Ink: on, Anchor: Middle}, h.Cells[row][column])
		}
	}
	for column, name := range h.X {
		c.Text(Point{f.left + w*(float64(column)+0.5), f.bottom + 18}, Font{Size: 11.5, Ink: black, Anchor: Middle},
			name)
	}
	h.border(c, f, w, t)
	c.Text(Point{(f.left + f.right) / 2, f.bottom + 38}, Font{Size: 12.5, Ink: black, Anchor: Middle}, h.XLabel)
	c.Text(Point{24, (f.top + f.bottom) / 2}, Font{Size: 12.5, Ink: black, Anchor: Middle, Up: true}, h.YLabel)
	c.Text(Point{left, c.Height - 14}, Font{Size: 11, Ink: grey, Anchor: Start}, h.Note)
	return c
}

func (h Heat) place(v float64) float64 {
	return math.Log(min(max(v, h.Lo), h.Hi)/h.Lo) / math.Log(h.Hi/h.Lo)
}

// border draws the line between the cells above and below the limit.
func (h Heat) border(c *Canvas, f frame, w, t float64) {
	if h.Limit == 0 {
		return
	}
	line := Stroke{Ink: red, Width: 3}
	over := func(row, column int) bool { return h.Values[row][column] > h.Limit }
	for row := range h.Y {
		for column := range h.X {
			x, y := f.left+w*float64(column), f.bottom-t*float64(row+1)
			if column > 0 && over(row, column) != over(row, column-1) {
				c.Line(line, Point{x, y}, Point{x, y + t})
			}
			if row > 0 && over(row, column) != over(row-1, column) {
				c.Line(line, Point{x, y + t}, Point{x + w, y + t})
			}
		}
	}
	c.Line(line, Point{f.left, 74}, Point{f.left + 34, 74})
	c.Text(Point{f.left + 41, 78}, Font{Size: 12.5, Ink: black, Anchor: Start}, h.Key)
}
