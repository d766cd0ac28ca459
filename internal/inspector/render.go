package inspector

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

//go:embed templates
var sources embed.FS

// page is what the layout needs; Body is the page's own.
type page struct {
	Title      string
	Here       string // path of the section under Root
	Sections   []section
	Workspace  string
	Workspaces []string
	Now        time.Time
	Body       any
}

type section struct{ Path, Name string }

var templates = parse()

func parse() map[string]*template.Template {
	funcs := template.FuncMap{
		"short": short, "dur": duration, "clock": func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"lower": strings.ToLower, "charge": charge, "in": func(a, b time.Time) string { return duration(b.Sub(a)) },
		"root": func() string { return Root }, "plural": plural[int], "amount": amount,
	}
	out := map[string]*template.Template{}
	for _, name := range []string{"writes", "write", "records", "ledger", "requests", "faults", "load"} {
		t := template.New("layout.html").Funcs(funcs)
		out[name] = template.Must(t.ParseFS(sources, "templates/layout.html", "templates/"+name+".html"))
	}
	return out
}

// show renders a page, or only its live part when the page's script asks.
func (i *Inspector) show(w http.ResponseWriter, r *http.Request, name, title string, body any) {
	p := page{Title: title, Workspace: i.workspace(r), Workspaces: i.Workspaces(), Now: i.Now(), Body: body,
		Here: strings.SplitN(strings.TrimPrefix(r.URL.Path, Root), "/", 2)[0]}
	if p.Here == "writes" {
		p.Here = ""
	}
	p.Sections = []section{{"", "Writes"}, {"records", "Records"}, {"ledger", "Ledger"}}
	if i.Requests != nil {
		p.Sections = append(p.Sections, section{"requests", "Requests"})
	}
	if i.Controls != nil {
		p.Sections = append(p.Sections, section{"faults", "Faults"})
	}
	p.Sections = append(p.Sections, section{"load", "Load"})
	part := "layout.html"
	if r.Header.Get("X-Fragment") == "live" {
		part = "live"
	}
	var buf bytes.Buffer
	if err := templates[name].ExecuteTemplate(&buf, part, p); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(buf.Bytes())
}

func (i *Inspector) broken(w http.ResponseWriter) {
	http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
}

// Link keeps the workspace in a link of the page.
func (p page) Link(path string, query ...string) template.URL {
	q := url.Values{}
	for n := 0; n+1 < len(query); n += 2 {
		if query[n+1] != "" {
			q.Set(query[n], query[n+1])
		}
	}
	if len(p.Workspaces) > 0 && p.Workspace != p.Workspaces[0] {
		q.Set("workspace", p.Workspace)
	}
	u := url.URL{Path: Root + path, RawQuery: q.Encode()}
	return template.URL(u.String()) //nolint:gosec // built by net/url
}

// short is the beginning of a long id.
func short(id string) string {
	if len(id) <= 16 {
		return id
	}
	return id[:16] + "…"
}

func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "−" + duration(-d)
	case d == 0:
		return "0 ms"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// plural is a number with its noun, whose plural ends in s.
func plural[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// amount is so many of a unit, whose name is a plural.
func amount(n int64, u protocol.Unit) string { return plural(n, strings.TrimSuffix(string(u), "s")) }

// charge says what became of a task's reservation.
func charge(t protocol.Task) string {
	if t.Amount == 0 {
		return "none"
	}
	word := "reserved"
	switch t.State {
	case protocol.Succeeded:
		word = "settled"
	case protocol.Failed:
		word = "released"
	}
	return amount(t.Amount, t.Account.Unit) + " " + word
}
