package inspector

import (
	"strconv"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// picture is a timeline as shapes: one column a moment, so that a crash of a
// minute and a commit of a millisecond are both to be seen, and three lanes.
type picture struct {
	Width, Height int
	Dots          []dot
	Bars          []bar
}

type dot struct {
	X, Y  int
	Class string
	Title string
	Time  string
}

type bar struct {
	X, Y, W, H int
	Class      string
	Title      string
}

const (
	column   = 56
	left     = 84
	laneOf   = 40
	barUpper = 56
)

// draw places requests on the first lane, attempts as bars on the second and
// what they reached on the third.
func draw(ms []moment) picture {
	p := picture{Width: left + max(len(ms), 1)*column, Height: 3*laneOf + 36}
	x := func(n int) int { return left + n*column + column/2 }
	open := -1 // where the attempt that runs began
	attempt := 0
	end := func(n int, class string) {
		if open < 0 {
			return
		}
		p.Bars = append(p.Bars, bar{X: x(open), Y: barUpper, W: max(x(n)-x(open), 8), H: 18, Class: class, Title: "attempt " + strconv.Itoa(attempt)})
		open = -1
	}
	for n, m := range ms {
		lane := 2
		switch protocol.StepKind(m.Kind) {
		case "request", protocol.StepAccepted, protocol.StepReplayed, protocol.StepConflict, protocol.StepRedriven:
			lane = 0
		case protocol.StepClaimed, protocol.StepReclaimed:
			lane = 1
			end(n, "lost")
			open, attempt = n, m.Attempt
		case protocol.StepUnfinished:
			lane = 1
			end(n, "lost")
		case protocol.StepRetrying, protocol.StepFailed:
			end(n, "bad")
		case protocol.StepSucceeded:
			end(n, "good")
		}
		class := "good"
		if m.Bad {
			class = "bad"
		}
		p.Dots = append(p.Dots, dot{X: x(n), Y: lane*laneOf + 25, Class: class + " " + m.Kind, Title: m.Label, Time: m.At.UTC().Format("05.000")})
	}
	end(len(ms), "running")
	return p
}
