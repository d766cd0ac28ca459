package memwrite_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

// printed collects everything the client can print: errors in every verb and
// at every depth, their fields as JSON, verdicts, what is logged and observed,
// and the addresses it asks for.
type printed struct {
	mu   sync.Mutex
	all  bytes.Buffer
	logs bytes.Buffer
}

func (p *printed) add(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(&p.all, format+"\n", args...)
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logs.Write(b)
}

func (p *printed) options() []memwrite.Option {
	text := slog.NewTextHandler(p, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true})
	return []memwrite.Option{
		memwrite.WithLogger(slog.New(text)),
		memwrite.WithObserver(memwrite.ObserverFunc(func(o memwrite.Observation) {
			b, _ := json.Marshal(o)
			p.add("%v %+v %#v %s", o, o, o, b)
		})),
	}
}

func (p *printed) error(err error) {
	if err == nil {
		return
	}
	p.add("%v %+v %#v %s %q", err, err, err, err, err)
	slog.New(slog.NewJSONHandler(p, nil)).Error("failed", "err", err, "verdict", memwrite.VerdictOf(err))
	v := memwrite.VerdictOf(err)
	p.add("%v %+v %#v %s", v, v, v, v.Action)
	if e, ok := err.(*memwrite.Error); ok {
		b, _ := json.Marshal(e)
		p.add("%s %+v %s %v", b, *e, e.Kind, e.GoString())
	}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		p.error(u.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range u.Unwrap() {
			p.error(inner)
		}
	}
}

func (p *printed) check(t *testing.T, secrets []string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all.Len() == 0 || p.logs.Len() == 0 {
		t.Error("nothing was printed")
	}
	for _, out := range []string{p.all.String(), p.logs.String()} {
		for _, secret := range secrets {
			if at := strings.Index(out, secret); at >= 0 {
				t.Errorf("%q is printed: ...%s...", secret, out[max(0, at-300):min(len(out), at+200)])
			}
		}
	}
}
