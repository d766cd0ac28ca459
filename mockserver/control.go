package mockserver

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// controlLimit bounds the body of a control call.
const controlLimit = 64 << 20

// control answers /_control/*: what the Go methods do, for tests in other
// languages.
//
//	GET    /_control/clock            {"now": ..., "frozen": false}
//	POST   /_control/clock            {"advance": "720h"} or {"freeze": true} or {"thaw": true}
//	POST   /_control/faults           a Fault; answers its number
//	GET    /_control/faults           what was armed, and how often each has struck
//	POST   /_control/faults/{n}/release
//	DELETE /_control/faults/{n}
//	DELETE /_control/faults           all of them
//	GET    /_control/journal, /strikes, /records, /tasks, /ledger
//	GET    /_control/ledger?key=K     of the writes under one identity
//	GET    /_control/webhooks         the messages so far
//	PUT    /_control/webhooks         {"workspace": "", "url": ..., "secret": ...}; an empty url ends them
//	GET    /_control/state            a snapshot
//	PUT    /_control/state            restores one
//	POST   /_control/reset
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	if !s.mayControl(r) {
		say(w, http.StatusForbidden, map[string]string{"error": "X-Control-Token is missing or wrong"})
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_control/clock", func(w http.ResponseWriter, _ *http.Request) { s.sayClock(w) })
	mux.HandleFunc("POST /_control/clock", s.controlClock)
	mux.HandleFunc("POST /_control/faults", s.controlArm)
	mux.HandleFunc("GET /_control/faults", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, s.faults.list()) })
	mux.HandleFunc("DELETE /_control/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.Disarm()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /_control/faults/{n}", s.controlFault((*Armed).Disarm))
	mux.HandleFunc("POST /_control/faults/{n}/release", s.controlFault((*Armed).Release))
	mux.HandleFunc("GET /_control/journal", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, s.Journal()) })
	mux.HandleFunc("GET /_control/strikes", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusOK, append([]Strike{}, s.Strikes()...))
	})
	mux.HandleFunc("GET /_control/records", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, s.Records()) })
	mux.HandleFunc("GET /_control/tasks", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, s.Tasks()) })
	mux.HandleFunc("GET /_control/ledger", s.controlLedger)
	mux.HandleFunc("GET /_control/webhooks", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, s.Deliveries()) })
	mux.HandleFunc("PUT /_control/webhooks", s.controlWebhook)
	mux.HandleFunc("GET /_control/state", func(w http.ResponseWriter, _ *http.Request) {
		out, err := s.Snapshot()
		if err != nil {
			say(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
			return
		}
		say(w, http.StatusOK, json.RawMessage(out))
	})
	mux.HandleFunc("PUT /_control/state", func(w http.ResponseWriter, r *http.Request) {
		var raw json.RawMessage
		if !hear(w, r, &raw) {
			return
		}
		if err := s.Restore(raw); err != nil {
			say(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /_control/reset", func(w http.ResponseWriter, _ *http.Request) {
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.ServeHTTP(w, r)
}

// mayControl lets a program on this machine in without a token, but no page in
// a browser on it: such a request names an Origin, or a Host that is not this
// machine.
func (s *Server) mayControl(r *http.Request) bool {
	if t := r.Header.Get("X-Control-Token"); t != "" {
		return subtle.ConstantTimeCompare([]byte(t), []byte(s.ControlToken)) == 1
	}
	if r.Header.Get("Origin") != "" {
		return false
	}
	return onThisMachine(r)
}

func (s *Server) controlClock(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Advance string `json:"advance"`
		Freeze  bool   `json:"freeze"`
		Thaw    bool   `json:"thaw"`
	}
	if !hear(w, r, &in) {
		return
	}
	if in.Advance != "" {
		d, err := time.ParseDuration(in.Advance)
		if err != nil || d < 0 {
			say(w, http.StatusBadRequest, map[string]string{"error": "advance must be a duration such as 720h"})
			return
		}
		s.Advance(d)
	}
	if in.Freeze {
		s.Freeze()
	}
	if in.Thaw {
		s.Thaw()
	}
	s.sayClock(w)
}

func (s *Server) sayClock(w http.ResponseWriter) {
	now, frozen, _ := s.clock.view()
	say(w, http.StatusOK, map[string]any{"now": now.UTC().Format(time.RFC3339Nano), "frozen": frozen})
}

func (s *Server) controlArm(w http.ResponseWriter, r *http.Request) {
	var f Fault
	if !hear(w, r, &f) {
		return
	}
	a, err := s.faults.arm(f)
	if err != nil {
		say(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	say(w, http.StatusCreated, map[string]int{"number": s.faults.number(a)})
}

func (s *Server) controlLedger(w http.ResponseWriter, r *http.Request) {
	if key := r.URL.Query().Get("key"); key != "" {
		say(w, http.StatusOK, s.LedgerOf(key))
		return
	}
	say(w, http.StatusOK, s.Ledger())
}

func (s *Server) controlFault(do func(*Armed)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		a := s.faults.at(n)
		if err != nil || a == nil {
			say(w, http.StatusNotFound, map[string]string{"error": "no such fault"})
			return
		}
		do(a)
		w.WriteHeader(http.StatusNoContent)
	}
}

func say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// hear reads a body. A field it does not know is refused: a word that is spelled
// wrongly would leave a fault wider than it was meant.
func hear(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, controlLimit))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("more than one document")
	}
	if err != nil {
		say(w, http.StatusBadRequest, map[string]string{"error": "the body is not the JSON this call takes: " + err.Error()})
		return false
	}
	return true
}
