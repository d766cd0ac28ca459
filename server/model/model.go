// Package model extracts facts with a language model behind an OpenAI-compatible
// endpoint: POST /chat/completions with a JSON schema for the answer.
package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Options say which model is asked, and where.
type Options struct {
	// URL is the endpoint's base, as https://host/v1; /chat/completions comes
	// behind it.
	URL   string
	Model string
	Key   string // sent as a bearer token; "" sends none
	// Timeout bounds one call; 30 s.
	Timeout time.Duration
	// Client makes the calls; a client of its own. Redirects are not followed:
	// they would take the key along.
	Client *http.Client
}

// maxAnswer bounds an answer in bytes.
const maxAnswer = 1 << 20

// Extractor is a protocol.Extractor on a model. It is safe for concurrent use.
type Extractor struct {
	endpoint string
	model    string
	key      string
	client   *http.Client
}

var _ protocol.Extractor = (*Extractor)(nil)

// New checks the options; nothing is asked yet.
func New(o Options) (*Extractor, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.RawQuery != "" {
		return nil, errors.New("model: the URL is https://host/path, without user, password or query")
	}
	if o.Model == "" {
		return nil, errors.New("model: a model is needed, by the name the endpoint knows it by")
	}
	if strings.ContainsAny(o.Key, "\r\n\x00") {
		return nil, errors.New("model: the key has a line break in it")
	}
	if ip := net.ParseIP(u.Hostname()); o.Key != "" && u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, errors.New("model: a key is not sent to another machine in the clear: use https")
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Client == nil {
		o.Client = &http.Client{}
	}
	client := *o.Client
	client.Timeout = o.Timeout
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Extractor{endpoint: strings.TrimSuffix(u.String(), "/") + "/chat/completions", model: o.Model, key: o.Key, client: &client}, nil
}

// Extract asks the model once. Its errors are failures with their class, and
// hold nothing of the input or of what the endpoint said.
func (e *Extractor) Extract(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
	body, err := json.Marshal(e.request(in))
	if err != nil {
		return nil, protocol.Fail(protocol.Rejected, "the input cannot be written as JSON")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, protocol.Fail(protocol.Infrastructure, "the model cannot be asked")
	}
	req.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		req.Header.Set("Authorization", "Bearer "+e.key)
	}
	res, err := e.client.Do(req)
	if err != nil {
		return nil, unreached(ctx, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, unreached(ctx, err)
	case res.StatusCode != http.StatusOK:
		return nil, refusal(res.StatusCode, raw)
	case len(raw) > maxAnswer:
		return nil, protocol.Fail(protocol.InvalidOutput, "the model's answer is too long")
	}
	return facts(raw)
}

// unreached is a call that brought no answer.
func unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return protocol.Fail(protocol.ProviderTimeout, "the model did not answer in time")
	}
	return protocol.Fail(protocol.Infrastructure, "the model cannot be reached")
}

// refusal is an answer with an error. The body is read for its code alone.
func refusal(status int, raw []byte) error {
	var body struct {
		Error struct {
			Code any    `json:"code"` // a string, or a number on some endpoints
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(raw, &body)
	quota := body.Error.Code == "insufficient_quota" || body.Error.Type == "insufficient_quota" || body.Error.Code == "billing_hard_limit_reached"
	class, say := protocol.Rejected, "the endpoint refuses the request"
	switch {
	case status == http.StatusPaymentRequired || (status == http.StatusTooManyRequests && quota):
		class, say = protocol.CreditsError, "the model's account is used up"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		class, say = protocol.Authorization, "the endpoint refuses the key"
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		class, say = protocol.ProviderTimeout, "the model did not answer in time"
	case status == http.StatusTooManyRequests || status >= 500:
		class, say = protocol.Infrastructure, "the endpoint is not available"
	}
	return protocol.Fail(class, fmt.Sprintf("%s (%d)", say, status))
}
