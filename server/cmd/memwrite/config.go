package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// envPrefix comes before the name of a flag in upper case, with underscores for
// its dashes: --database-url is MEMWRITE_DATABASE_URL.
const envPrefix = "MEMWRITE_"

func envOf(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// settle gives every flag that was not on the command line the value the
// environment has for it, or else the file. A name in the file that is no flag
// is an error: it would be a setting somebody believes in.
func settle(flags *pflag.FlagSet, getenv func(string) string, file string) error {
	settings, err := readSettings(file)
	if err != nil {
		return err
	}
	var errs []error
	for name := range settings {
		if f := flags.Lookup(name); f == nil || name == "config" || name == "help" {
			errs = append(errs, fmt.Errorf("%s: %q is no setting; `memwrite serve --help` lists them", file, name))
		}
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "config" || f.Name == "help" {
			return
		}
		value, from := settings[f.Name], file
		if v := getenv(envOf(f.Name)); v != "" {
			value, from = v, envOf(f.Name)
		}
		if value == "" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			if secret(f.Name) {
				err = errors.New("not a valid value")
			}
			errs = append(errs, fmt.Errorf("%s: %s: %w", from, f.Name, err))
		}
	})
	return errors.Join(errs...)
}

// readSettings reads a file of names and values, YAML or JSON, which is YAML.
func readSettings(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	return parseSettings(file, raw)
}

func parseSettings(file string, raw []byte) (map[string]string, error) {
	var doc map[string]yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("%s: not a file of names and values", file) // the parser's text may quote a secret
	}
	out := make(map[string]string, len(doc))
	for name, v := range doc {
		if v.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%s: %s: one value is wanted", file, name)
		}
		out[name] = v.Value
	}
	return out, nil
}

// secret says that the value of a flag is not for others to see.
func secret(name string) bool {
	return slices.Contains([]string{"database-url", "extractor-key", "inspector-token", "nats-url", "webhook-secret", "webhook-url"}, name)
}

// announce prints the configuration without its secrets, one setting each.
func announce(log *slog.Logger, flags *pflag.FlagSet) {
	var attrs []any
	flags.VisitAll(func(f *pflag.Flag) {
		if v := f.Value.String(); f.Name != "help" && v != "" {
			attrs = append(attrs, f.Name, shown(f.Name, v))
		}
	})
	log.Info("configuration", attrs...)
}

func shown(name, value string) string {
	if !secret(name) {
		return value
	}
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		u.RawQuery, u.Fragment = "", "" // a password may be there as well
		if name == "webhook-url" {
			u.Path, u.RawPath = "", "" // and here
		}
		return u.Redacted()
	}
	return "(set)"
}

// newLog writes to w in the form and from the level that are asked for.
func newLog(w io.Writer, form, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %s: want debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch form {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("--log-format %s: want text or json", form)
}
