package inspector

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Controls is what may be done to a server under test.
type Controls interface {
	Faults() []Fault
	// Kinds and Points are what Arm takes.
	Kinds() []string
	Points() []string
	// Arm's error says what is wrong with the fault.
	Arm(Fault) error
	Disarm(number int) bool
	Release(number int) bool
	DisarmAll()
	Frozen() bool
	Freeze()
	Thaw()
	Advance(time.Duration)
}

// Fault is one that is armed, or to be.
type Fault struct {
	Number     int
	Kind       string
	Point      string
	Key        string
	Times      int
	Code       int
	RetryAfter string
	Delay      time.Duration
	Fired      int
	Over       bool
}

type panel struct {
	Faults []Fault
	Kinds  []string
	Points []string
	Frozen bool
	Said   string // what came of the last action
	Wrong  bool
}

func (i *Inspector) faults(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i.show(w, r, "faults", "Faults", panel{
		Faults: i.Controls.Faults(), Kinds: i.Controls.Kinds(), Points: i.Controls.Points(), Frozen: i.Controls.Frozen(),
		Said: q.Get("said"), Wrong: q.Get("wrong") != "",
	})
}

// maxAdvance bounds one step of the clock: beyond it times are no times.
const maxAdvance = 10 * 365 * 24 * time.Hour

// act does one thing and goes back to the page, so that a reload repeats
// nothing.
func (i *Inspector) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	said, wrong := i.do(r.PostForm)
	q := url.Values{"said": {said}}
	if wrong {
		q.Set("wrong", "1")
	}
	http.Redirect(w, r, Root+"faults?"+q.Encode(), http.StatusSeeOther)
}

func (i *Inspector) do(f url.Values) (said string, wrong bool) {
	c := i.Controls
	n, _ := strconv.Atoi(f.Get("number"))
	switch f.Get("do") {
	case "arm":
		return i.arm(f)
	case "kill":
		return i.armed(Fault{Kind: "kill_runner", Point: f.Get("point"), Times: 1}, "The next runner dies.")
	case "lose":
		return i.armed(Fault{Kind: "lose_wakeup", Times: 1}, "The next wake-up is lost.")
	case "disarm":
		if !c.Disarm(n) {
			return "There is no such fault.", true
		}
		return "Disarmed.", false
	case "release":
		if !c.Release(n) {
			return "There is no such fault.", true
		}
		return "Released.", false
	case "disarm-all":
		c.DisarmAll()
		return "All faults are disarmed.", false
	case "freeze":
		c.Freeze()
		return "The clock stands still.", false
	case "thaw":
		c.Thaw()
		return "The clock runs.", false
	case "advance":
		d, err := time.ParseDuration(f.Get("by"))
		if err != nil || d <= 0 || d > maxAdvance {
			return "The clock moves forward by a duration such as 90s or 720h.", true
		}
		c.Advance(d)
		return "The clock moved by " + duration(d) + ".", false
	}
	return "There is nothing of that name to do.", true
}

func (i *Inspector) arm(f url.Values) (string, bool) {
	fault := Fault{Kind: f.Get("kind"), Point: f.Get("point"), Key: f.Get("key"), RetryAfter: f.Get("retry_after")}
	for _, n := range []struct {
		name string
		to   *int
	}{{"times", &fault.Times}, {"code", &fault.Code}} {
		if s := f.Get(n.name); s != "" {
			v, err := strconv.Atoi(s)
			if err != nil {
				return n.name + " is a number.", true
			}
			*n.to = v
		}
	}
	if s := f.Get("delay"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return "delay is a duration such as 2s.", true
		}
		fault.Delay = d
	}
	return i.armed(fault, "Armed: "+fault.Kind+".")
}

func (i *Inspector) armed(f Fault, said string) (string, bool) {
	if err := i.Controls.Arm(f); err != nil {
		return err.Error(), true
	}
	return said, false
}
