package sim

import (
	"fmt"
	"html/template"
	"io"
	"strings"
)

// WriteLog writes a failure as text: what was broken, the script, every step
// that did something.
func WriteLog(w io.Writer, r *Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\n%v\n\nworld %+v\n\n", r.Script.Seed, r.Violation, r.Script.World)
	for _, in := range r.Script.Intents {
		fmt.Fprintf(&b, "intent %+v\n", in)
	}
	for _, op := range r.Script.Ops {
		fmt.Fprintf(&b, "operation %+v\n", op)
	}
	for _, f := range r.Script.Faults {
		fmt.Fprintf(&b, "fault %v\n", f)
	}
	b.WriteString("\n")
	for _, e := range r.Log {
		b.WriteString(e.String() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteTimeline writes a failure as a page: a column for each owner, a row for
// each thing that happened.
func WriteTimeline(w io.Writer, r *Result) error {
	type row struct {
		Step   int
		At     string
		Column int
		Class  string
		Text   string
	}
	data := struct {
		Seed      uint64
		Violation string
		Columns   []string
		Rows      []row
	}{Seed: r.Script.Seed}
	if r.Violation != nil {
		data.Violation = r.Violation.Error()
	}
	at := map[string]int{}
	for _, e := range r.Log {
		owner, _, _ := strings.Cut(e.Owner, "/")
		if _, ok := at[owner]; !ok {
			at[owner] = len(data.Columns)
			data.Columns = append(data.Columns, owner)
		}
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s", e.What, e.Name, e.More))
		if e.N != 0 {
			text += fmt.Sprintf(" (%d)", e.N)
		}
		data.Rows = append(data.Rows, row{e.Step, e.At.String(), at[owner], e.What, text})
	}
	return timeline.Execute(w, data)
}

var timeline = template.Must(template.New("timeline").Funcs(template.FuncMap{
	"is": func(a, b int) bool { return a == b },
}).Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>seed {{.Seed}}</title>
<style>
body { font: 12px/1.4 system-ui, sans-serif; margin: 1em }
table { border-collapse: collapse } th { position: sticky; top: 0; background: #fff; text-align: left }
td, th { border-bottom: 1px solid #e4e4e4; padding: 1px 6px; vertical-align: top; max-width: 26em; overflow-wrap: anywhere }
.fault { background: #ffe9d6 } .violation { background: #ffb9b9; font-weight: bold } .write { color: #14532d }
.node { background: #fdf3b5 } .stale { color: #9a3412 } .calm { background: #d8f3dc }
</style>
<h1>seed {{.Seed}}</h1><p>{{.Violation}}</p>
<table><thead><tr><th>step</th><th>time</th>{{range .Columns}}<th>{{.}}</th>{{end}}</tr></thead><tbody>
{{range $r := .Rows}}<tr><td>{{$r.Step}}</td><td>{{$r.At}}</td>{{range $i, $c := $.Columns}}<td{{if is $i $r.Column}} class="{{$r.Class}}">{{$r.Text}}{{else}}>{{end}}</td>{{end}}</tr>
{{end}}</tbody></table></html>
`))
