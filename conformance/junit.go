package conformance

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"time"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Host     string      `xml:"hostname,attr"`
	Started  string      `xml:"timestamp,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Group   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Time    string       `xml:"time,attr"`
	Failure *junitReason `xml:"failure,omitempty"`
	Skipped *junitReason `xml:"skipped,omitempty"`
}

type junitReason struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML, one test case a check. A check
// that could not run is a skipped case with its reason.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{
		Name: "conformance", Host: hostOf(r.Server), Started: r.Started.UTC().Format(time.RFC3339),
		Tests: len(r.Results), Failures: r.Count(Failed), Skipped: r.Count(NotRun), Time: seconds(r.Took),
	}
	for _, res := range r.Results {
		group, name, _ := strings.Cut(res.Name, "/")
		c := junitCase{Group: "conformance." + group, Name: name, Time: seconds(res.Took)}
		switch res.Outcome {
		case Failed:
			c.Failure = &junitReason{Message: printable(res.Why), Text: res.Promise + " (" + res.Point + ")"}
		case NotRun:
			c.Skipped = &junitReason{Message: printable(res.Why)}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// printable drops what XML 1.0 cannot hold: an answer may be any bytes.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xfffd || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, s)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
