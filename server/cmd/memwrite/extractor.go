package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/model"
)

// extractor is how facts are found: by the rules that need no model, unless an
// endpoint is named.
type extractor struct {
	options model.Options
	keyFile string
}

func (e *extractor) flags(f *pflag.FlagSet) {
	f.StringVar(&e.options.URL, "extractor-url", "", "base `URL` of an OpenAI-compatible endpoint that extracts facts, as https://host/v1; without one, rules do")
	f.StringVar(&e.options.Model, "extractor-model", "", "`name` of the model there")
	f.StringVar(&e.options.Key, "extractor-key", "", "key for that endpoint; better in "+envOf("extractor-key")+" or a file")
	f.StringVar(&e.keyFile, "extractor-key-file", "", "`file` with that key")
	f.DurationVar(&e.options.Timeout, "extractor-timeout", 30*time.Second, "how long one call of the model may take")
}

// open gives the extractor; nil is the rules.
func (e *extractor) open(log *slog.Logger) (protocol.Extractor, error) {
	o := e.options
	if o.URL == "" {
		if o.Model != "" || o.Key != "" || e.keyFile != "" {
			return nil, errors.New("--extractor-model and its key need --extractor-url")
		}
		return nil, nil
	}
	if o.Timeout <= 0 {
		return nil, fmt.Errorf("--extractor-timeout %v: want more than nothing", o.Timeout)
	}
	if e.keyFile != "" {
		if o.Key != "" {
			return nil, errors.New("--extractor-key and --extractor-key-file: use one of the two")
		}
		raw, err := os.ReadFile(e.keyFile)
		if err != nil {
			return nil, fmt.Errorf("--extractor-key-file: %w", err)
		}
		o.Key = strings.TrimSpace(string(raw))
	}
	m, err := model.New(o)
	if err != nil {
		return nil, fmt.Errorf("--extractor-url: %w", err)
	}
	return told{m, log}, nil
}

// told logs why a model gave no facts: an event has the code alone, and one
// who reads it may not be who runs the server.
type told struct {
	protocol.Extractor
	log *slog.Logger
}

func (t told) Extract(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
	facts, err := t.Extractor.Extract(ctx, in)
	// A failure has a text of ours, which repeats neither input nor answer; an
	// extraction that nobody waits for any more ends with something else.
	if f, ok := errors.AsType[*protocol.Failure](err); ok {
		t.log.Warn("the model gave no facts", "why", f.Message, "code", f.Code, "class", f.Class)
	}
	return facts, err
}
