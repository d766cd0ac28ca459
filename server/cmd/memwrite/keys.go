package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/webhook"
)

// keyFile is who may call, and what each workspace may use.
type keyFile struct {
	Keys       []keyEntry       `yaml:"keys"`
	Workspaces []workspaceEntry `yaml:"workspaces,omitempty"`
}

type keyEntry struct {
	Key       string    `yaml:"key,omitempty"`    // the key itself, or
	SHA256    string    `yaml:"sha256,omitempty"` // its SHA-256 in hex
	Service   string    `yaml:"service"`          // memorysync or fishmem
	Workspace string    `yaml:"workspace,omitempty"`
	Scopes    []string  `yaml:"scopes,omitempty"` // none: all of the service
	Expires   time.Time `yaml:"expires,omitempty"`
	Project   string    `yaml:"project,omitempty"`
}

type workspaceEntry struct {
	ID                    string `yaml:"id"`
	Credits               *int64 `yaml:"credits,omitempty"`        // none: no bound
	AddsPerMonth          *int64 `yaml:"adds_per_month,omitempty"` // none: no bound
	StrictQuota           bool   `yaml:"strict_quota,omitempty"`
	InvalidOutputAttempts int    `yaml:"invalid_output_attempts,omitempty"`
	WebhookURL            string `yaml:"webhook_url,omitempty"` // with webhook_secret
	WebhookSecret         string `yaml:"webhook_secret,omitempty"`
}

const defaultWorkspace = "default"

var allScopes = map[string][]string{
	service.ServiceMemorySync: {service.ScopeMemoryAll, service.ScopeProjectsRead},
	service.ServiceFishMem:    {service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead},
}

// access is a key file made ready. Every workspace that a key names is in it.
type access struct {
	keys       []service.Key
	workspaces []protocol.Workspace
	webhooks   map[string]webhook.Target
}

// readKeys reads a key file. Its errors name the entry and never the key.
func readKeys(file string) (access, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return access{}, fmt.Errorf("the keys cannot be read: %w", err)
	}
	a, err := parseKeys(raw)
	if err != nil {
		return access{}, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

func parseKeys(raw []byte) (access, error) {
	var f keyFile
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return access{}, errors.New("not a key file: want `keys:` with key or sha256, service and workspace, and `workspaces:` with id, credits, adds_per_month, strict_quota, invalid_output_attempts and its webhook")
	}
	return f.access()
}

func (f keyFile) access() (a access, err error) {
	a.webhooks = map[string]webhook.Target{}
	known := map[string]bool{}
	for i, w := range f.Workspaces {
		if w.ID == "" || known[w.ID] {
			return a, fmt.Errorf("workspace %d: it needs an id of its own", i+1)
		}
		known[w.ID] = true
		if (w.WebhookURL == "") != (w.WebhookSecret == "") {
			return a, fmt.Errorf("workspace %d: webhook_url and webhook_secret belong together", i+1)
		}
		if w.WebhookURL != "" {
			a.webhooks[w.ID] = webhook.Target{URL: w.WebhookURL, Secret: w.WebhookSecret}
		}
		out := protocol.Workspace{ID: w.ID, AddsPerMonth: -1, Credits: -1, StrictQuota: w.StrictQuota,
			Extraction: protocol.ExtractionPolicy{InvalidOutputAttempts: w.InvalidOutputAttempts}}
		if w.Credits != nil {
			out.Credits = *w.Credits
		}
		if w.AddsPerMonth != nil {
			out.AddsPerMonth = *w.AddsPerMonth
		}
		a.workspaces = append(a.workspaces, out)
	}
	for i, k := range f.Keys {
		scopes, ok := allScopes[k.Service]
		if !ok {
			return a, fmt.Errorf("key %d: its service is memorysync or fishmem", i+1)
		}
		if len(k.Scopes) > 0 {
			scopes = k.Scopes
		}
		if k.Workspace == "" {
			k.Workspace = defaultWorkspace
		}
		key := service.NewKey(k.Key, k.Workspace, k.Service, scopes...)
		switch sum, err := hex.DecodeString(k.SHA256); {
		case (k.Key == "") == (k.SHA256 == ""):
			return a, fmt.Errorf("key %d: it needs either key or sha256", i+1)
		case k.Key != "" && len(k.Key) < 16:
			return a, fmt.Errorf("key %d: it is shorter than 16 characters; `memwrite keys new` makes one", i+1)
		case k.SHA256 != "" && (err != nil || len(sum) != len(key.Hash)):
			return a, fmt.Errorf("key %d: its sha256 is not 64 hex digits", i+1)
		case k.SHA256 != "":
			copy(key.Hash[:], sum)
		}
		key.Expires, key.Project = k.Expires, k.Project
		a.keys = append(a.keys, key)
		if !known[k.Workspace] {
			known[k.Workspace] = true
			a.workspaces = append(a.workspaces, protocol.Workspace{ID: k.Workspace, AddsPerMonth: -1, Credits: -1})
		}
	}
	return a, nil
}

// findKeys takes the keys from the file that is named, from the environment, or
// from a file beside the data, which is made with a key for each service if it
// is not there.
func findKeys(file string, getenv func(string) string, folder string) (access, string, error) {
	var f keyFile
	for svc, name := range map[string]string{service.ServiceMemorySync: envMemorySync, service.ServiceFishMem: envFishMem} {
		if k := getenv(name); k != "" {
			f.Keys = append(f.Keys, keyEntry{Key: k, Service: svc})
		}
	}
	switch {
	case file != "" && len(f.Keys) > 0:
		return access{}, "", fmt.Errorf("keys are in --keys and in %s or %s: use one of the two", envMemorySync, envFishMem)
	case file != "":
		a, err := readKeys(file)
		return a, file, err
	case len(f.Keys) > 0:
		a, err := f.access()
		if err != nil {
			err = fmt.Errorf("%s and %s: %w", envMemorySync, envFishMem, err)
		}
		return a, keysOfEnvironment, err
	}
	file = filepath.Join(folder, "keys.yaml")
	if err := makeKeys(file); err != nil && !errors.Is(err, fs.ErrExist) {
		// The keys are the first that is written in the folder of the data.
		return access{}, "", fmt.Errorf("keys cannot be made in the folder of --db: %w; let this user write there, or choose another --db", err)
	}
	a, err := readKeys(file)
	return a, file, err
}

// keysOfEnvironment is where keys of the environment come from, in words.
const keysOfEnvironment = "the environment"

const (
	envMemorySync = envPrefix + "MEMORYSYNC_KEY"
	envFishMem    = envPrefix + "FISHMEM_KEY"
)

// makeKeys writes a file with a new key for each service.
func makeKeys(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	out, err := yaml.Marshal(keyFile{Keys: []keyEntry{
		{Key: newKey(service.ServiceMemorySync), Service: service.ServiceMemorySync, Workspace: defaultWorkspace},
		{Key: newKey(service.ServiceFishMem), Service: service.ServiceFishMem, Workspace: defaultWorkspace},
	}})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(out)
	return errors.Join(err, f.Close())
}

func newKey(svc string) string {
	prefix := map[string]string{service.ServiceMemorySync: "ms_live_", service.ServiceFishMem: "fm_"}[svc]
	return prefix + strings.ToLower(rand.Text())
}

// keysCommand prints the keys that `serve` made, as a shell reads them.
func keysCommand() *cobra.Command {
	var db, url string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Print the keys that serve made, as variables the client reads: eval \"$(memwrite keys)\"",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file := filepath.Join(filepath.Dir(db), "keys.yaml")
			raw, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("the keys cannot be read: %w; `memwrite keys` is for the user who runs `memwrite serve`", err)
			}
			if err != nil {
				return fmt.Errorf("no keys yet: `memwrite serve` makes them beside its --db when it starts without --keys. When it has another --db or --listen than the usual, give `memwrite keys` the same --db, and --url with the address: %w", err)
			}
			var f keyFile
			if err := yaml.Unmarshal(raw, &f); err != nil {
				return fmt.Errorf("%s: not a key file", file)
			}
			variables := map[string]string{}
			for _, k := range f.Keys {
				name := map[string]string{service.ServiceMemorySync: "MEMORYSYNC", service.ServiceFishMem: "FISHMEM"}[k.Service]
				variables[name+"_BASE_URL"], variables[name+"_API_KEY"] = url, k.Key
				if !asJSON {
					fmt.Fprintf(cmd.OutOrStdout(), "export %s_BASE_URL=%s %s_API_KEY=%s\n", name, url, name, k.Key)
				}
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), variables)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&db, "db", defaultDB(), "the `file` serve uses; the keys are beside it")
	cmd.Flags().StringVar(&url, "url", "http://"+defaultListen, "the `URL` of the server")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the variables as JSON")
	cmd.AddCommand(&cobra.Command{
		Use: "new memorysync|fishmem", Short: "Make a key and print it with its SHA-256, for a key file", Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if allScopes[args[0]] == nil {
				return errors.New("want memorysync or fishmem")
			}
			secret := newKey(args[0])
			key := service.NewKey(secret, "", args[0])
			fmt.Fprintf(cmd.OutOrStdout(), "key: %s\nsha256: %x\n", secret, key.Hash)
			return nil
		},
	})
	return cmd
}
