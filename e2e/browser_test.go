package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

var (
	pictures = flag.String("pictures", "", "folder the screenshots go to; a temporary one without it")
	full     = flag.Bool("full", false, "fill the store with 100,000 writes and measure the page")
)

// most is how long the browser may take for one thing on a busy machine.
const most = 60 * time.Second

// tab is a page of a headless browser before a server of its own, and what the
// page complained about and asked for.
type tab struct {
	*testing.T
	ctx    context.Context
	server *mockserver.Server
	client *memwrite.Client

	mu       sync.Mutex
	troubles []string
	asked    []string
}

func open(t *testing.T, opts ...mockserver.Option) *tab {
	t.Helper()
	path := chromium(t)
	s := mockserver.Run(t, opts...)
	b := &tab{T: t, server: s, client: s.Client(t)}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 800), chromedp.Flag("disable-background-networking", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(end)
	b.ctx = ctx
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	command(b, network.Enable, network.EnableParams{})
	command(b, runtime.Enable, cdp.Empty{})
	command(b, log.Enable, cdp.Empty{})
	b.visit("")
	t.Cleanup(b.clean)
	return b
}

// chromium finds the browser, or says what was not tested.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("MEMWRITE_REQUIRE_SERVICES") == "1" {
		t.Fatal("no Chromium on PATH: install the package chromium")
	}
	t.Skip("no Chromium on PATH: the inspector was not driven in a browser")
	return ""
}

func (b *tab) listen(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, ev.Request.URL)
	case *runtime.EventExceptionThrown:
		b.troubles = append(b.troubles, "exception: "+ev.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" || ev.Type == "warning" {
			b.troubles = append(b.troubles, fmt.Sprintf("console.%s", ev.Type))
		}
	case *log.EventEntryAdded:
		if ev.Entry.Level == "error" {
			b.troubles = append(b.troubles, ev.Entry.Text)
		}
	}
}

// clean is asked at the end of every test: no complaint, nothing fetched from
// elsewhere, and the server's own books in order.
func (b *tab) clean() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.troubles {
		b.Errorf("the page complained: %s", s)
	}
	for _, u := range b.asked {
		if !strings.HasPrefix(u, b.server.URL+"/") && !strings.HasPrefix(u, "data:") {
			b.Errorf("the page asked %s", u)
		}
	}
	if err := b.server.Check(); err != nil {
		b.Error(err)
	}
}

// get runs one action and gives its value.
func get[T any](b *tab, a chromedp.Action[T]) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, most)
	defer cancel()
	out, err := chromedp.Run(ctx, a)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	for _, a := range actions {
		get(b, a)
	}
}

// command sends one of the protocol's commands.
func command[P, R any](b *tab, c cdp.Command[P, R], params P) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, c, params); err != nil {
		b.Fatal(err)
	}
}

// js evaluates an expression.
func js[T any](b *tab, expression string, opts ...chromedp.EvaluateOption) T {
	b.Helper()
	return get(b, chromedp.Evaluate[T](expression, opts...))
}

// until waits for an expression to be true, across navigations.
func (b *tab) until(expression string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, most)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for {
		// A page that is on its way gives an error, and the next look sees it.
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)); err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Fatalf("never true: %s\nthe page says:\n%s", expression, js[string](b, "document.body.innerText"))
		}
	}
}

func (b *tab) visit(path string) { b.do(chromedp.Navigate(b.server.InspectorURL() + path)) }

// sees waits until the page's text holds what.
func (b *tab) sees(what string) {
	b.Helper()
	quoted, _ := json.Marshal(what)
	b.until(fmt.Sprintf("document.body.innerText.includes(%s)", quoted))
}

// leaves does what leads to another page, and waits for that.
func (b *tab) leaves(act func()) {
	b.Helper()
	js[int](b, "window.stale = 1")
	act()
	b.until(`window.stale === undefined && document.readyState === "complete"`)
}

// presses is a click that leads to another page.
func (b *tab) presses(selector string) {
	b.Helper()
	b.leaves(func() { b.do(chromedp.Click(selector)) })
}

// isLive waits for the stream, so that what comes next is seen through it.
func (b *tab) isLive() {
	b.Helper()
	b.until(`document.getElementById("live-state").textContent === "live"`)
}

// keys types into whatever has the focus.
func (b *tab) keys(s string) {
	b.Helper()
	b.do(chromedp.KeyEvent(s))
}

// focused is the id of what has the focus.
func (b *tab) focused() string {
	b.Helper()
	return js[string](b, "document.activeElement.id || document.activeElement.textContent.trim()")
}

// tabTo presses Tab until the element has the focus, as one without a mouse
// has to.
func (b *tab) tabTo(id string) {
	b.Helper()
	for range 60 {
		if b.focused() == id {
			return
		}
		b.keys("\t")
	}
	b.Fatalf("%s cannot be reached by Tab", id)
}

func (b *tab) picture(name string) {
	b.Helper()
	png := get(b, chromedp.FullScreenshot(100))
	dir := *pictures
	if dir == "" {
		dir = b.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.Fatal(err)
	}
	if len(png) < 5000 {
		b.Errorf("%s.png has %d bytes", name, len(png))
	}
}

// dark and phone change how the page is looked at.
func (b *tab) dark() {
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
}

func (b *tab) phone() { b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile)) }

// write sends an inferred write.
func (b *tab) write(key, text string) *memwrite.Receipt {
	b.Helper()
	r, err := b.client.AddAsync(b.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", key), Scope: memwrite.Scope{UserID: "sam"}, Content: text})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// settled writes and waits for the end.
func (b *tab) settled(key, text string) *memwrite.Event {
	b.Helper()
	e, err := b.client.WaitForEvent(b.Context(), b.write(key, text).EventID)
	if err != nil {
		b.Fatal(err)
	}
	return e
}
