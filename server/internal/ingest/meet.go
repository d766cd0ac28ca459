package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/memwrite/memwrite-go/worker"
)

// meet decides about one record: sent now, done before, or refused.
func (in *ingest) meet(it item) error {
	var rec worker.Record
	if it.err == nil {
		rec, it.err = in.decode(it.data)
	}
	if it.err != nil {
		return in.say(Line{Line: it.line, Outcome: Rejected, Reason: it.err.Error()})
	}
	if in.state == nil {
		in.start(it, nil)
		return nil
	}
	ctx := in.writes // what was read is kept, also when ctx ends here
	identity, text := fingerprint(rec)
	k, found, err := in.state.find(ctx, identity)
	switch {
	case err != nil:
		return fmt.Errorf("the state: %w", err)
	case found && !bytes.Equal(k.text, text) && (k.run == in.state.run || k.ended != ""):
		where := fmt.Sprintf("line %d has", k.line)
		if k.run != in.state.run {
			where = "an earlier run wrote"
		}
		return in.say(Line{Line: it.line, Identity: rec.Identity(), Outcome: Rejected,
			Reason: where + " this id with another text; an edit needs a version of its own"})
	case found && k.run == in.state.run:
		return in.say(Line{Line: it.line, Identity: rec.Identity(), Outcome: Duplicate, Reason: fmt.Sprintf("of line %d", k.line)})
	case found && k.ended != "":
		in.counts.Before++
		if err := in.state.again(ctx, identity, it.line); err != nil {
			return fmt.Errorf("the state: %w", err)
		}
		return nil
	}
	if err := in.state.meet(ctx, identity, text, it.line); err != nil {
		return fmt.Errorf("the state: %w", err)
	}
	if in.cfg.DryRun {
		return in.say(Line{Line: it.line, Identity: rec.Identity(), Outcome: Valid})
	}
	in.start(it, identity)
	return nil
}

// decode reads a record, which may be inside a dead letter.
func (in *ingest) decode(data []byte) (worker.Record, error) {
	if in.cfg.DeadLetter {
		var letter worker.DeadLetter
		if err := json.Unmarshal(data, &letter); err != nil || len(letter.Data()) == 0 {
			return worker.Record{}, errors.New("the line is not a dead letter")
		}
		data = letter.Data()
	}
	r, err := in.cfg.Defaults.Decode(bytes.TrimSpace(data))
	if err == nil && in.cfg.Unordered {
		r.Order = string(digest([]string{r.EndUser(), r.Identity()}))
	}
	return r, err
}
