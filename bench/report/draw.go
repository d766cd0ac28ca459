package main

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Picture is a plot beside the page, and what it says in words.
type Picture struct {
	Group Group
	File  string // "" when nothing has a target
	Alt   string
}

var (
	good = color.RGBA{R: 0x1d, G: 0x6b, B: 0x35, A: 0xff}
	bad  = color.RGBA{R: 0xa3, G: 0x20, B: 0x14, A: 0xff}
)

// share is how much of its target a figure uses: 1 is just enough, less is
// better, whichever way the target points.
func share(f Figure) (float64, bool) {
	switch {
	case f.Op == "<=" && f.Target > 0:
		return f.Value / f.Target, true
	case f.Op == ">=" && f.Value > 0:
		return f.Target / f.Value, true
	}
	return 0, false
}

// drawn bounds a bar, so that one figure far off does not flatten the rest.
const drawn = 2.0

// drawGroup makes one bar a figure that has a target.
func drawGroup(dir string, g Group) (Picture, error) {
	p := Picture{Group: g}
	var names []string
	var values []float64
	var within []bool
	for n := len(g.Figures) - 1; n >= 0; n-- { // from below
		if s, ok := share(g.Figures[n]); ok {
			names = append(names, g.Figures[n].Name)
			values = append(values, min(s, drawn))
			within = append(within, g.Figures[n].OK)
		}
	}
	if len(names) == 0 {
		return p, nil
	}
	pl := plot.New()
	pl.X.Label.Text = "share of the target that is used (1 is the target, less is better)"
	pl.X.Min, pl.X.Max = 0, 1.1
	for _, v := range values {
		pl.X.Max = max(pl.X.Max, v+0.1)
	}
	for n := range values {
		bars, err := plotter.NewBarChart(plotter.Values{values[n]}, vg.Points(12))
		if err != nil {
			return p, err
		}
		bars.Horizontal, bars.XMin, bars.LineStyle.Width, bars.Color = true, float64(n), 0, good
		if !within[n] {
			bars.Color = bad
		}
		pl.Add(bars)
	}
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.6}, {X: 1, Y: float64(len(values)) - 0.4}})
	if err != nil {
		return p, err
	}
	line.LineStyle.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	pl.Add(line)
	pl.NominalY(names...)
	canvas := vgsvg.New(640, vg.Length(48+22*len(names)))
	pl.Draw(draw.New(canvas))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return p, err
	}
	p.File = g.Name + ".svg"
	p.Alt = fmt.Sprintf("How much of its target each %s figure uses", g.Name)
	return p, os.WriteFile(filepath.Join(dir, p.File), svg.Bytes(), 0o644)
}
