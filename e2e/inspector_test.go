package e2e

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/memwrite/memwrite-go/mockserver"
)

const note = "My team ships releases every Thursday."

func TestAWriteGoesThroughItsStatesLive(t *testing.T) {
	b := open(t, mockserver.RealTimes())
	b.isLive()
	frozen := b.server.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Point: mockserver.AfterInference})
	id := b.write("0001", note).EventID
	row := func() string { return js[string](b, `document.querySelector("#live tbody tr").innerText`) }
	b.until(`document.querySelector("#live tbody .running") !== null`)
	if got := row(); !strings.Contains(got, "1 of 5") || !strings.Contains(got, "2 credits reserved") || !strings.Contains(got, "runner_") {
		t.Errorf("the running write is %q", got)
	}
	frozen.Release()
	b.until(`document.querySelector("#live tbody .succeeded") !== null`)
	if got := row(); !strings.Contains(got, "2 credits settled") || strings.Contains(got, "runner_") {
		t.Errorf("the write that ended is %q", got)
	}
	b.visit("writes/" + id)
	b.sees("the reservation is settled and the input is gone")
}

func TestAFaultIsArmedAndItsEffectSeen(t *testing.T) {
	b := open(t)
	b.visit("faults")
	b.do(chromedp.SetValue("#kind", "drop_response"))
	b.presses("#arm")
	b.sees("Armed: drop_response.")
	b.do(chromedp.SetValue("#kill-point", "after_commit"))
	b.presses("#kill")
	b.sees("The next runner dies.")
	b.presses("#lose")
	b.sees("The next wake-up is lost.")
	b.picture("inspector-faults")

	e := b.settled("0001", note)
	b.visit("requests")
	b.sees("202, lost")
	b.sees("duplicate of 1")
	b.picture("inspector-requests")
	b.visit("writes/" + e.ID)
	for _, want := range []string{"the answer was lost (drop_response)", "replayed", "unfinished", "reclaimed by", "succeeded"} {
		b.sees(want)
	}
	b.picture("inspector-write")
	b.visit("faults")
	b.sees("1 of 1, over")
	b.do(chromedp.SetValue("#by", "720h"))
	b.presses("#advance")
	b.sees("The clock moved by 720 h")
}

func TestTheLedgerBalancesLive(t *testing.T) {
	b := open(t, mockserver.Credits(10))
	b.visit("ledger")
	b.isLive()
	for n := range 4 {
		b.settled(fmt.Sprint(n), note)
	}
	b.server.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid})
	if r := b.write("bad", "A text the model answers with no plan."); r.EventID == "" {
		t.Fatal("not accepted")
	}
	b.sees("release")
	b.sees("balanced 0 reservations open, 0 ended twice")
	spent := js[string](b, `document.querySelector("#live tbody tr").innerText`)
	if got := strings.Join(strings.Fields(spent), " "); got != "credits always 10 2 0 8" {
		t.Errorf("the account is %q", got)
	}
	b.picture("inspector-ledger")
}

func TestSearchFinds(t *testing.T) {
	b := open(t)
	for n := range 30 {
		b.write(fmt.Sprint(n), note)
	}
	e := b.settled("wanted", "Billing closes on the 5th of each month.")
	for _, q := range []string{e.ID, "note-wanted", e.Results[0].ID} {
		b.do(chromedp.SetValue("#q", q))
		b.presses("form[role=search] button")
		b.sees("1 write shown")
		b.sees(e.ID[:16])
	}
	b.do(chromedp.Clear("#q"), chromedp.SetValue("#state", "FAILED"))
	b.presses("form[role=search] button")
	b.sees("No write matches")
}

func TestTheKeyboardAloneSuffices(t *testing.T) {
	b := open(t)
	e := b.settled("0001", note)
	b.visit("")
	b.keys("\t")
	if got := b.focused(); got != "Skip to content" {
		t.Errorf("the first Tab reaches %q", got)
	}
	b.keys(kb.Enter)
	b.keys("/")
	if got := b.focused(); got != "q" {
		t.Fatalf("the slash reaches %q", got)
	}
	b.leaves(func() { b.keys("note-0001" + kb.Enter) })
	b.sees("1 write shown")
	b.tabTo("w-" + e.ID)
	// The live part is made anew while the link has the focus, and it stays.
	b.settled("0002", note)
	b.until(fmt.Sprintf("document.activeElement.id === %q", "w-"+e.ID))
	b.leaves(func() { b.keys(kb.Enter) })
	b.sees("Timeline")
	b.tabTo("Faults")
	b.leaves(func() { b.keys(kb.Enter) })
	b.sees("Arm a fault")
	b.tabTo("kind")
	b.keys("status")
	b.tabTo("times")
	b.tabTo("arm")
	b.leaves(func() { b.keys(kb.Enter) })
	b.sees("Armed: status.")
	b.tabTo("disarm-all")
	b.leaves(func() { b.keys(kb.Enter) })
	b.sees("Nothing is armed.")
}

func TestAScriptInATextStaysText(t *testing.T) {
	b := open(t)
	const evil = `<script>window.hit=1</script><img src=x onerror="window.hit=1"> ships every Thursday`
	b.settled(`"><script>window.hit=1</script>`, evil)
	for _, page := range []string{"", "records", "requests", "ledger", `?q=` + `%22%3E%3Cscript%3Ewindow.hit%3D1%3C%2Fscript%3E`} {
		b.visit(page)
		if js[bool](b, "window.hit !== undefined") {
			t.Errorf("%q ran the script", page)
		}
	}
	b.visit("records")
	b.sees("<script>window.hit=1</script>")
}

//go:embed testdata/axe.min.js
var axe string

func TestNoSeriousBarrier(t *testing.T) {
	b := open(t)
	b.server.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterPlan})
	e := b.settled("0001", note)
	b.server.Arm(mockserver.Fault{Kind: mockserver.DropResponse, Times: -1, Key: "nobody"})
	for _, look := range []struct {
		name string
		how  func()
	}{{"light", func() {}}, {"dark", b.dark}, {"phone", b.phone}} {
		look.how()
		for _, page := range []string{"", "writes/" + e.ID, "records", "ledger", "requests", "faults", "load"} {
			b.visit(page)
			js[int](b, axe+"; 0")
			out := js[string](b, `axe.run().then(r => JSON.stringify(r.violations.map(v => ({id: v.id, impact: v.impact, nodes: v.nodes.map(n => n.html).slice(0, 3)}))))`, chromedp.EvalAwaitPromise)
			var found []struct {
				ID, Impact string
				Nodes      []string
			}
			if err := json.Unmarshal([]byte(out), &found); err != nil {
				t.Fatal(err)
			}
			for _, v := range found {
				if v.Impact == "serious" || v.Impact == "critical" {
					t.Errorf("%s, %q: %s (%s) at %q", look.name, page, v.ID, v.Impact, v.Nodes)
				}
			}
			if js[bool](b, "document.documentElement.scrollWidth > window.innerWidth + 1") {
				t.Errorf("%s, %q: the page is wider than the window", look.name, page)
			}
		}
		b.visit("")
		b.picture("inspector-" + look.name)
	}
}
