package figure

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
