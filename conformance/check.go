package conformance

import "slices"

// need is what a check asks of the server or of the configuration.
type need string

const (
	needMemorySync need = "MemorySync"
	needFishMem    need = "FishMem"
	needFaults     need = "faults"             // the control API
	needBooks      need = "the books"          // the control API's ledger, or /v1/usage
	needOtherMS    need = "OtherMemorySyncKey" // a second workspace
	needOtherFM    need = "OtherFishMemKey"
	needHold       need = "Prefer: wait"
)

// whyNot says what is missing.
var whyNot = map[need]string{
	needMemorySync: "no MemorySync URL is given",
	needFishMem:    "no FishMem URL is given",
	needFaults:     "the server's control API was not found, so no fault can be injected",
	needBooks:      "the server shows no ledger: neither its control API nor /v1/usage answers",
	needOtherMS:    "no MemorySync key of another workspace is given",
	needOtherFM:    "no FishMem key of another workspace is given",
	needHold:       "the server does not hold a request that prefers to wait",
}

// check is one promise and how it is seen to be kept.
type check struct {
	name    string
	promise string
	point   string // of the contract: service and section
	needs   []need
	calls   int // without polls
	credits int
	adds    int
	known   string // what is publicly known of a live service here: it goes beside a failure
	run     func(*probe)
}

// writes says that the check changes something on the server.
func (c *check) writes() bool { return c.credits+c.adds > 0 }

func (c *check) wants(n need) bool { return slices.Contains(c.needs, n) }

// checks are all promises, in the order of a report.
func checks() []*check {
	var all []*check
	for _, group := range [][]*check{
		addChecks(), turnChecks(), acceptChecks(), verbatimChecks(), eventChecks(), failureChecks(), crashChecks(),
		billingChecks(), deleteChecks(), errorChecks(), isolationChecks(),
	} {
		all = append(all, group...)
	}
	return all
}
