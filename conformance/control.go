package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// fault is one thing that shall go wrong, in the words of the control API.
type fault struct {
	Kind       string        `json:"kind"`
	Point      string        `json:"point,omitempty"`
	Key        string        `json:"key,omitempty"`
	Times      int           `json:"times,omitempty"`
	Code       int           `json:"code,omitempty"`
	RetryAfter string        `json:"retry_after,omitempty"`
	Delay      time.Duration `json:"delay_ns,omitempty"`
}

// The points of an attempt where a runner can be killed, in order.
var points = []string{"before_inference", "after_inference", "after_plan", "after_commit", "before_finish"}

// control is the reference server's /_control.
type control struct {
	calls *caller
}

// offered says whether the control API answers here.
func (c *control) offered(ctx context.Context) bool {
	a := c.calls.do(ctx, request{method: http.MethodGet, path: "/_control/faults"})
	var list []any
	return a.status == http.StatusOK && json.Unmarshal(a.body, &list) == nil
}

// arm gives the number of a fault that waits for its moment.
func (c *control) arm(ctx context.Context, f fault) (int, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return 0, err
	}
	a := c.calls.do(ctx, request{method: http.MethodPost, path: "/_control/faults", body: string(body)})
	n, _ := a.fields["number"].(json.Number)
	number, err := strconv.Atoi(n.String())
	if a.status != http.StatusCreated || err != nil {
		return 0, fmt.Errorf("the control API does not know the fault %s: %s", f.Kind, a)
	}
	return number, nil
}

func (c *control) disarm(ctx context.Context, number int) {
	c.calls.do(ctx, request{method: http.MethodDelete, path: "/_control/faults/" + strconv.Itoa(number)})
}

func (c *control) release(ctx context.Context, number int) {
	c.calls.do(ctx, request{method: http.MethodPost, path: "/_control/faults/" + strconv.Itoa(number) + "/release"})
}

// charge is what one write came to, in units of its account.
type charge struct {
	Reserved int64 `json:"reserved"` // ever held
	Settled  int64 `json:"settled"`  // paid
	Released int64 `json:"released"` // given back
}

// charged reads the charges of one identity.
func (c *control) charged(ctx context.Context, key string) (charge, error) {
	a := c.calls.do(ctx, request{method: http.MethodGet, path: "/_control/ledger?key=" + url.QueryEscape(key)})
	var out struct {
		Units *charge `json:"units"`
	}
	if a.status != http.StatusOK || json.Unmarshal(a.body, &out) != nil || out.Units == nil {
		return charge{}, fmt.Errorf("the control API has no ledger of a key: %s", a)
	}
	return *out.Units, nil
}
