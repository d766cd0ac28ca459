package inspector

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// chart is one small line over the last slots.
type chart struct {
	Name, Unit string
	Last, Most string
	Points     string // of an SVG polyline, 0..600 by 0..80
	Summary    string // for who cannot see it
}

func (i *Inspector) load(w http.ResponseWriter, r *http.Request) {
	slots := i.Watch.Load(i.Now())
	perSecond := func(n int) float64 { return float64(n) / slotWidth.Seconds() }
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	i.show(w, r, "load", "Load", struct {
		Charts []chart
		Span   time.Duration
		Open   int
	}{
		[]chart{
			plot("Accepted", "a second", slots, func(s Slot) float64 { return perSecond(s.Accepted) }),
			plot("Claimed", "a second", slots, func(s Slot) float64 { return perSecond(s.Claimed) }),
			plot("Ended", "a second", slots, func(s Slot) float64 { return perSecond(s.Ended) }),
			plot("Queue depth", "writes", slots, func(s Slot) float64 { return float64(s.Depth) }),
			plot("Wait, due to claimed", "ms, median", slots, func(s Slot) float64 { return ms(s.Wait()) }),
			plot("Latency, accepted to its end", "ms, median", slots, func(s Slot) float64 { return ms(s.Latency()) }),
		},
		slotWidth * slotCount, i.Watch.Listeners(),
	})
}

func plot(name, unit string, slots []Slot, of func(Slot) float64) chart {
	most := 0.0
	values := make([]float64, len(slots))
	for n, s := range slots {
		values[n] = of(s)
		most = max(most, values[n])
	}
	points := make([]string, len(values))
	for n, v := range values {
		y := 78.0
		if most > 0 {
			y -= 74 * v / most
		}
		points[n] = fmt.Sprintf("%.1f,%.1f", float64(n)*600/float64(max(len(values)-1, 1)), y)
	}
	last := 0.0
	if len(values) > 0 {
		last = values[len(values)-1]
	}
	c := chart{Name: name, Unit: unit, Last: number(last), Most: number(most), Points: strings.Join(points, " ")}
	c.Summary = fmt.Sprintf("%s: now %s, at most %s %s", name, c.Last, c.Most, unit)
	return c
}

func number(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d", int64(v))
	}
	return fmt.Sprintf("%.1f", v)
}
