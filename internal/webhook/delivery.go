package webhook

import (
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// State is what became of a delivery.
type State string

// The states.
const (
	Waiting State = "waiting"  // its first or next attempt is due at Next
	Told    State = "told"     // answered with 2xx
	GivenUp State = "given_up" // the last attempt failed
)

// Delivery is one message on its way. It holds no secret and no memory text.
type Delivery struct {
	ID        string    `json:"id"`
	Message   string    `json:"message"` // the stable id
	Type      string    `json:"type"`
	Workspace string    `json:"workspace"`
	EventID   string    `json:"event_id"`
	State     State     `json:"state"`
	Attempts  int       `json:"attempts"`
	Status    int       `json:"status"` // HTTP, of the last attempt; 0 when no answer came
	Next      time.Time `json:"next"`
}

type delivery struct {
	Delivery
	body []byte
	busy bool
}

func newDelivery(t protocol.Task) *delivery {
	m := messageOf(t)
	return &delivery{
		Delivery: Delivery{ID: deliveryID(t.Workspace, m.ID), Message: m.ID, Type: m.Type, Workspace: t.Workspace, EventID: t.ID, State: Waiting},
		body:     m.encode(),
	}
}

// Deliveries are those that wait and the newest that ended, oldest first.
func (s *Sender) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := append([]Delivery{}, s.ended...)
	for _, d := range s.waiting {
		out = append(out, d.Delivery)
	}
	return out
}
