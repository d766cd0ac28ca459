package conformance

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// suite is one run against one server.
type suite struct {
	cfg Config
	run string // random, in every name

	memorySync, fishMem           *caller
	otherMemorySync, otherFishMem *caller
	control                       *control
	tenant                        string
	offers                        map[need]bool
	holds                         bool
	usage                         bool // the books are /v1/usage alone
	writes                        bool
	watch                         *watch
}

func newSuite(ctx context.Context, cfg Config) (*suite, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	var raw [5]byte
	_, _ = rand.Read(raw[:])
	s := &suite{cfg: cfg, run: hex.EncodeToString(raw[:]), offers: map[need]bool{}, watch: &watch{}}
	s.memorySync = s.caller(cfg.MemorySync.URL, "X-API-Key", "", cfg.MemorySync.Key)
	s.otherMemorySync = s.caller(cfg.MemorySync.URL, "X-API-Key", "", cfg.OtherMemorySyncKey)
	s.fishMem = s.caller(cfg.FishMem.URL, "Authorization", "Bearer ", cfg.FishMem.Key)
	s.otherFishMem = s.caller(cfg.FishMem.URL, "Authorization", "Bearer ", cfg.OtherFishMemKey)
	s.watch.secrets = []string{cfg.MemorySync.Key, cfg.FishMem.Key, cfg.OtherMemorySyncKey, cfg.OtherFishMemKey}
	if err := s.discover(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *suite) caller(base, header, prefix, key string) *caller {
	return &caller{
		base: base, header: map[string]string{header: prefix + key}, secret: key,
		http: s.cfg.HTTPClient, pace: s.cfg.Pace, watch: s.watch.see,
	}
}

// discover asks what the server offers. It only reads.
func (s *suite) discover(ctx context.Context) error {
	cfg := s.cfg
	if cfg.MemorySync.URL != "" {
		a := s.memorySync.do(ctx, request{method: http.MethodGet, path: "/org/projects"})
		switch {
		case a.err != nil:
			return fmt.Errorf("conformance: MemorySync at %s cannot be reached: %w", hostOf(cfg.MemorySync.URL), a.err)
		case a.status == http.StatusOK:
			s.tenant = firstTenant(a)
		case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
			s.tenant = "default" // what a key that may not list its projects uses
		}
		if s.tenant == "" {
			return fmt.Errorf("conformance: /org/projects answers %d and names no tenant", a.status)
		}
		s.offers[needMemorySync] = true
		s.offers[needOtherMS] = cfg.OtherMemorySyncKey != ""
	}
	if cfg.FishMem.URL != "" {
		a := s.fishMem.do(ctx, request{method: http.MethodGet, path: "/v1/events/task_" + s.run, header: map[string]string{"Prefer": "wait=0"}})
		switch {
		case a.err != nil:
			return fmt.Errorf("conformance: FishMem at %s cannot be reached: %w", hostOf(cfg.FishMem.URL), a.err)
		case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
			return fmt.Errorf("conformance: the FishMem key is refused with %d %s", a.status, a.code())
		}
		s.offers[needFishMem] = true
		s.offers[needOtherFM] = cfg.OtherFishMemKey != ""
		a = s.fishMem.do(ctx, request{method: http.MethodGet, path: "/v1/usage"})
		s.usage = a.status == http.StatusOK && a.fields["credits"] != nil
		s.offers[needBooks] = s.usage
		if s.usage {
			// Only a server with this extension may hold a request; a live one
			// ignores the preference, and finding out there would cost a write.
			s.offers[needHold] = true
			s.holds = true
		}
	}
	if cfg.ControlURL != "" {
		s.control = &control{calls: &caller{
			base: cfg.ControlURL, header: map[string]string{"X-Control-Token": cfg.ControlToken},
			http: cfg.HTTPClient, watch: func(request, answer) {},
		}}
		if cfg.ControlToken == "" {
			delete(s.control.calls.header, "X-Control-Token")
		}
		if !s.control.offered(ctx) {
			return fmt.Errorf("conformance: %s does not open its control API: check ControlURL and ControlToken", hostOf(cfg.ControlURL))
		}
		s.offers[needFaults] = true
		if _, err := s.control.charged(ctx, "conform-"+s.run); err == nil {
			s.offers[needBooks], s.usage = true, false
		}
	}
	s.writes = cfg.AllowWrites || cfg.local() || s.offers[needFaults]
	return ctx.Err()
}

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "that URL"
	}
	return u.Host
}

// whyNot is the reason a check does not run, "" when it does.
func (s *suite) whyNot(c *check) string {
	for _, n := range c.needs {
		if !s.offers[n] {
			return whyNot[n]
		}
	}
	if c.writes() && !s.writes {
		return "it writes, and this service is live: allow writes to run it"
	}
	return ""
}

func (s *suite) selected() []*check {
	return slices.DeleteFunc(checks(), func(c *check) bool { return !s.cfg.wants(c.name) })
}

func (s *suite) plan() Planned {
	var p Planned
	for _, c := range s.selected() {
		if s.whyNot(c) != "" {
			p.NotRun++
			continue
		}
		p.Checks++
		p.Calls += c.calls
		if s.usage && c.wants(needBooks) {
			p.Calls += 2 // the account before and after
		}
		p.Credits += c.credits
		p.Adds += c.adds
		p.Writes = p.Writes || c.writes()
	}
	for _, c := range watched() {
		if s.cfg.wants(c.name) {
			p.Checks++
		}
	}
	for n, ok := range s.offers {
		if ok {
			p.Offers = append(p.Offers, string(n))
		}
	}
	slices.Sort(p.Offers)
	return p
}

// Run checks every promise the server can be asked for. The error is of the
// run: a bad configuration, a server that is not there, a context that ended. A
// promise that is not kept is in the Report and no error.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	s, err := newSuite(ctx, cfg)
	if err != nil {
		return nil, err
	}
	report := &Report{Planned: s.plan(), Server: cmp.Or(s.cfg.FishMem.URL, s.cfg.MemorySync.URL), Started: time.Now()}
	if cfg.Planned != nil {
		if err := cfg.Planned(report.Planned); err != nil {
			return report, err
		}
	}
	all := s.selected()
	report.Results = make([]Result, len(all))
	var wg sync.WaitGroup
	seats := make(chan struct{}, s.cfg.Parallel)
	var alone []int
	for i, c := range all {
		if s.usage && c.wants(needBooks) {
			alone = append(alone, i) // their books do not tell keys apart
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			seats <- struct{}{}
			defer func() { <-seats }()
			report.Results[i] = s.one(ctx, c)
		}()
	}
	wg.Wait()
	for _, i := range alone {
		// Whoever else writes meanwhile shows in them too: only what goes wrong
		// every time is the server's.
		for range 5 {
			if report.Results[i] = s.one(ctx, all[i]); report.Results[i].Outcome != Failed {
				break
			}
		}
	}
	report.Results = append(report.Results, s.watch.results(s.cfg)...)
	report.Took = time.Since(report.Started)
	return report, ctx.Err()
}

// one runs a check and takes back what it did.
func (s *suite) one(ctx context.Context, c *check) (r Result) {
	r = Result{Name: c.name, Promise: c.promise, Point: c.point, Outcome: Passed}
	if why := s.whyNot(c); why != "" {
		r.Outcome, r.Why = NotRun, why
		return r
	}
	began := time.Now()
	limited, cancel := sched.Real().WithTimeout(ctx, s.cfg.Patience, nil)
	defer cancel()
	p := &probe{s: s, ctx: limited, name: shortName(c.name)}
	defer func() {
		// Also after a failure, and when patience has ended.
		p.ctx, cancel = sched.Real().WithTimeout(context.WithoutCancel(ctx), 30*time.Second, nil)
		defer cancel()
		p.tidyUp()
		r.Calls, r.Polls, r.Took = int(p.calls.Load()), int(p.polls.Load()), time.Since(began)
	}()
	defer func() {
		switch v := recover().(type) {
		case nil:
		case broken:
			r.Outcome, r.Why = Failed, v.why
			if c.known != "" {
				r.Why += " (" + c.known + ")"
			}
		case impossible:
			r.Outcome, r.Why = NotRun, v.why
		default:
			panic(v)
		}
		if r.Outcome == Failed && ctx.Err() != nil {
			r.Outcome, r.Why = NotRun, "the run was ended"
		}
	}()
	c.run(p)
	return r
}

// shortName fits a check's name into keys, references and users.
func shortName(name string) string {
	out := []byte(name)
	for i, b := range out {
		if b == '/' {
			out[i] = '-'
		}
	}
	return string(out)
}
