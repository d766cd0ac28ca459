package server

import "github.com/memwrite/memwrite-go/internal/webhook"

// told counts an attempt at a webhook, and says when it failed: nobody else
// would, since the subscriber is the one that does not hear.
func (n *Node) told(a webhook.Attempt) {
	outcome := webhookOutcomes[a.State]
	n.watch.metrics.Webhook(outcome)
	if a.State == webhook.Told {
		return
	}
	fields := []any{"host", a.Host, "workspace", a.Workspace, "event", a.EventID, "delivery", a.ID, "attempt", a.Attempts, "of", a.Most, "status", a.Status}
	if a.Err != nil {
		fields = append(fields, "error", a.Err)
	}
	if a.State == webhook.GivenUp {
		n.log.Error("a webhook was given up; its subscriber will not hear of the event", fields...)
		return
	}
	n.log.Warn("a webhook was not delivered and will be tried again", append(fields, "next", a.Next)...)
}

// webhookOutcomes are the values of a metric's label.
var webhookOutcomes = map[webhook.State]string{webhook.Told: "delivered", webhook.Waiting: "failed", webhook.GivenUp: "given_up"}
