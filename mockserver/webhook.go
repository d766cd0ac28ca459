package mockserver

import (
	"net/http"
	"net/url"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/webhook"
)

// Webhook lets the server's own workspace tell a URL of every inferred write
// that SUCCEEDED, signed with secret, as FishMem does. See [Server.SetWebhook].
func Webhook(url, secret string) Option {
	return func(c *config) { c.hook = webhook.Target{URL: url, Secret: secret} }
}

// Delivery is one webhook message on its way.
type Delivery struct {
	ID       string    `json:"id"`       // x-fishmem-delivery, the same on every attempt
	Message  string    `json:"message"`  // the id in the body, the same however often it is told
	EventID  string    `json:"event_id"` // of the write
	State    string    `json:"state"`    // waiting, told or given_up
	Attempts int       `json:"attempts"` // at most 5
	Status   int       `json:"status"`   // HTTP, of the last attempt; 0 when no answer came
	Next     time.Time `json:"next"`     // of one that waits
}

// SetWebhook lets the messages of a workspace ("" is the server's own) go to a
// URL from now on, and those of writes that ended in the last ten minutes too.
// An empty URL ends them. A message is sent until it is answered with 2xx, at
// most 5 times, after waits of milliseconds unless RealTimes is set. As at the
// live service there is none for a write that FAILED.
func (s *Server) SetWebhook(workspace, url, secret string) {
	if workspace == "" {
		workspace = s.Workspace
	}
	s.hooksOnce.Do(s.hooks.Start)
	s.hooks.Set(workspace, webhook.Target{URL: url, Secret: secret})
}

// Deliveries are the webhook messages so far, oldest first, the last thousand
// of those that ended.
func (s *Server) Deliveries() []Delivery {
	out := []Delivery{}
	for _, d := range s.hooks.Deliveries() {
		out = append(out, Delivery{
			ID: d.ID, Message: d.Message, EventID: d.EventID, State: string(d.State), Attempts: d.Attempts, Status: d.Status, Next: d.Next,
		})
	}
	return out
}

func (s *Server) newHooks() *webhook.Sender {
	c := webhook.Config{Store: func() protocol.Store { store, _ := s.core.now(); return store }, Scheduler: s.clock}
	if !s.cfg.realTimes {
		c.Every = 50 * time.Millisecond
		c.BackOff = protocol.BackOff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond}
	}
	return webhook.New(c)
}

// observe passes a step on to whoever shows it or tells it.
func (s *Server) observe(step protocol.Step) {
	s.watch.Observe(step)
	if s.cfg.onStep != nil {
		s.cfg.onStep(told(&step))
	}
	if step.Kind == protocol.StepSucceeded {
		s.hooks.Nudge()
	}
}

func (s *Server) controlWebhook(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Workspace string `json:"workspace"`
		URL       string `json:"url"`
		Secret    string `json:"secret"`
	}
	if !hear(w, r, &in) {
		return
	}
	if u, err := url.Parse(in.URL); in.URL != "" && (err != nil || u.Host == "" || in.Secret == "") {
		say(w, http.StatusBadRequest, map[string]string{"error": "a webhook needs a url with a host, and a secret"})
		return
	}
	s.SetWebhook(in.Workspace, in.URL, in.Secret)
	w.WriteHeader(http.StatusNoContent)
}
