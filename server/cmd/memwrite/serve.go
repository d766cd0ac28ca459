package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/inspector"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/webhook"
	"github.com/memwrite/memwrite-go/server"
)

const defaultListen = "127.0.0.1:8080"

// config is what `serve` may be told. Each is a flag, a variable of the
// environment and a name in the configuration file.
type config struct {
	file        string
	listen      string
	db          string
	databaseURL string
	connections int
	natsURL     string
	natsSubject string
	skipCheck   bool
	vector      string
	keys        string
	tlsCert     string
	tlsKey      string
	plaintext   bool
	logFormat   string
	logLevel    string
	grace       time.Duration
	checkpoint  time.Duration
	limits      engine.Limits
	service     service.Options
	rates       bool
	inspect     bool
	inspectKey  string
	metrics     bool
	otlp        string
	extract     extractor
	hook        webhook.Target
}

func (c *config) flags(f *pflag.FlagSet) {
	f.StringVar(&c.file, "config", "", "read settings from this `file`, YAML or JSON; its names are those of the flags")
	f.StringVar(&c.listen, "listen", defaultListen, "`address` to listen on")
	f.StringVar(&c.db, "db", defaultDB(), "SQLite `file`")
	f.StringVar(&c.databaseURL, "database-url", "", "`URL` of a PostgreSQL database for many nodes, in place of the file: postgres://user:password@host/database")
	f.IntVar(&c.connections, "database-connections", 10, "how many connections to the database this node keeps at most, beside two for wake-ups")
	f.StringVar(&c.natsURL, "nats-url", "", "`URL` of a NATS server that carries wake-ups between nodes, in place of the database")
	f.StringVar(&c.natsSubject, "nats-subject", "memwrite.wakeups", "what nodes that share a database tell each other under")
	f.BoolVar(&c.skipCheck, "skip-integrity-check", false, "do not read the whole file for damage at the start")
	f.StringVar(&c.vector, "vector", vectorOff, "off: a search compares every record of its scope; embedded: it asks an index beside the SQLite file, or in the memory of each node; pgvector: it asks the database; auto: pgvector where that is there, else embedded")
	f.StringVar(&c.keys, "keys", "", "`file` of API keys and workspaces; without one, keys are taken from "+envMemorySync+" and "+envFishMem+", or made beside the data")
	f.StringVar(&c.tlsCert, "tls-cert", "", "certificate `file` (PEM), with --tls-key")
	f.StringVar(&c.tlsKey, "tls-key", "", "private key `file` (PEM), with --tls-cert")
	f.BoolVar(&c.plaintext, "allow-plaintext", false, "listen beyond this machine without TLS, as behind a proxy that has it")
	f.StringVar(&c.logFormat, "log-format", "text", "text or json")
	f.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error")
	f.DurationVar(&c.grace, "grace", 25*time.Second, "how long requests and tasks that are under way may take to end when the server stops")
	f.DurationVar(&c.checkpoint, "checkpoint-every", time.Minute, "how often SQLite's log is folded into its file and emptied")
	f.IntVar(&c.limits.Runners, "runners", 16, "tasks that run at once")
	f.IntVar(&c.limits.MaxAttempts, "max-attempts", 5, "attempts of a task before it is FAILED")
	f.DurationVar(&c.limits.Lease, "lease", 30*time.Second, "how long a runner holds a task without a heartbeat")
	f.DurationVar(&c.limits.Heartbeat, "heartbeat", 10*time.Second, "how often a runner extends its lease")
	f.DurationVar(&c.limits.RepairEvery, "repair-every", 5*time.Second, "how often due tasks are looked for without a wake-up")
	f.DurationVar(&c.limits.BackOff.Base, "backoff", time.Second, "wait after a task's first attempt; it doubles")
	f.DurationVar(&c.limits.BackOff.Cap, "backoff-cap", time.Minute, "longest wait between attempts")
	f.DurationVar(&c.limits.InferenceTimeout, "inference-timeout", time.Minute, "how long one extraction may take")
	f.DurationVar(&c.service.InlineWait, "inline-wait", 25*time.Second, "how long /memory/add waits for its task before it answers 503")
	f.BoolVar(&c.service.StrictKeys, "strict-keys", false, "ask for an Idempotency-Key on verbatim writes and deletes too")
	f.BoolVar(&c.rates, "rate-limits", false, "limit each key as the live services do; counted on each node")
	f.BoolVar(&c.inspect, "inspector", false, "serve the inspector's page under /_inspector/, to browsers on this machine")
	f.StringVar(&c.inspectKey, "inspector-token", "", "password that lets browsers elsewhere see the inspector")
	f.StringVar(&c.hook.URL, "webhook-url", "", "tell this `URL` of every inferred write that SUCCEEDED; workspaces may name their own in the file of keys")
	f.StringVar(&c.hook.Secret, "webhook-secret", "", "what those messages are signed with")
	f.StringVar(&c.otlp, "otlp-endpoint", "", "send the runs of traced writes to this `URL` of an OpenTelemetry collector, such as http://127.0.0.1:4318/v1/traces")
	f.BoolVar(&c.metrics, "metrics", false, "serve /metrics for Prometheus, without a key")
	c.extract.flags(f)
}

// check refuses what cannot work or is not safe, before anything is opened.
func (c *config) check() error {
	host, _, err := net.SplitHostPort(c.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: want host:port", c.listen)
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key belong together")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && c.tlsCert == "" && !c.plaintext {
		return fmt.Errorf("--listen %s is reached from other machines, and keys would travel in the clear: give --tls-cert and --tls-key, or --allow-plaintext behind a proxy that has TLS", c.listen)
	}
	if err := c.checkVector(); err != nil {
		return err
	}
	if err := checkTraces(c.otlp); err != nil {
		return err
	}
	l := c.limits
	for name, d := range map[string]time.Duration{"lease": l.Lease, "heartbeat": l.Heartbeat, "repair-every": l.RepairEvery, "backoff": l.BackOff.Base,
		"backoff-cap": l.BackOff.Cap, "inference-timeout": l.InferenceTimeout, "inline-wait": c.service.InlineWait, "checkpoint-every": c.checkpoint} {
		if d <= 0 {
			return fmt.Errorf("--%s %v: want more than nothing", name, d)
		}
	}
	switch {
	case (c.hook.URL == "") != (c.hook.Secret == ""):
		return errors.New("--webhook-url and --webhook-secret belong together")
	case l.Runners < 1 || l.MaxAttempts < 1:
		return errors.New("--runners and --max-attempts are at least 1")
	case l.Heartbeat >= l.Lease:
		return fmt.Errorf("--heartbeat %v does not keep a --lease of %v: a third of it is usual", l.Heartbeat, l.Lease)
	case c.connections < 2:
		return errors.New("--database-connections is at least 2")
	case c.natsURL != "" && c.databaseURL == "":
		return errors.New("--nats-url joins nodes that share a database: give --database-url too")
	case c.grace < 0:
		return errors.New("--grace is not negative")
	}
	return nil
}

func serve() *cobra.Command {
	c := &config{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer both services until interrupted, from one SQLite file or a shared database",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.file == "" {
				c.file = os.Getenv(envOf("config"))
			}
			if err := settle(cmd.Flags(), os.Getenv, c.file); err != nil {
				return err
			}
			if err := c.check(); err != nil {
				return err
			}
			log, err := newLog(cmd.ErrOrStderr(), c.logFormat, c.logLevel)
			if err != nil {
				return err
			}
			announce(log, cmd.Flags())
			return c.run(cmd.Context(), log)
		},
	}
	c.flags(cmd.Flags())
	return cmd
}

func (c *config) run(ctx context.Context, log *slog.Logger) (err error) {
	who, from, err := findKeys(c.keys, os.Getenv, filepath.Dir(c.db))
	if err != nil {
		return err
	}
	if len(who.keys) == 0 {
		log.Warn("no key is known, so every request will be refused", "keys", from)
	}
	if c.keys == "" && from != keysOfEnvironment && c.databaseURL != "" {
		log.Warn("these keys are this node's own, made beside its data: every other node on the database refuses them. Give all nodes the same file with --keys", "keys", from)
	}
	extract, err := c.extract.open(log)
	if err != nil {
		return err
	}
	scheme := "http"
	var secure *tls.Config
	if c.tlsCert != "" {
		scheme = "https"
		pair, err := tls.LoadX509KeyPair(c.tlsCert, c.tlsKey)
		if err != nil {
			return fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	// The address is taken before anything is stored: a second server fails here.
	l, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w; stop what has the address, or choose another", err)
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	db, err := openStore(ctx, c, log)
	if err != nil {
		_ = l.Close()
		return err
	}
	if c.rates {
		c.service.MemorySyncRates, c.service.FishMemRates = service.FreeTier(), service.FishMemRate()
	}
	hooks := who.webhooks
	for _, w := range who.workspaces {
		if _, own := hooks[w.ID]; !own && c.hook.URL != "" {
			hooks[w.ID] = c.hook
		}
	}
	observe, stopTraces, err := traces(ctx, c.otlp, log)
	if err != nil {
		_ = l.Close()
		return errors.Join(err, db.close())
	}
	defer stopTraces()
	node, err := server.New(ctx, server.Options{
		Store: db.store, Wakeups: db.wakeups, Projector: db.index, Extractor: extract, Keys: who.keys, Workspaces: who.workspaces,
		Limits: c.limits, Service: c.service, Log: log, CheckpointEvery: c.checkpoint,
		Inspect: c.inspect, InspectorToken: c.inspectKey, Metrics: c.metrics, Webhooks: hooks, Observe: observe,
	})
	if err != nil {
		_ = l.Close()
		return errors.Join(err, db.close())
	}
	at := scheme + "://" + l.Addr().String()
	where := []any{"url", at, "store", db.name, "keys", from}
	if c.inspect {
		where = append(where, "inspector", at+inspector.Root)
	}
	if c.metrics {
		where = append(where, "metrics", at+"/metrics")
	}
	log.Info("serving", where...)
	err = node.Serve(ctx, l, c.grace)
	log.Info("stopping")
	err = errors.Join(err, node.Close())
	log.Info("stopped")
	return err
}
