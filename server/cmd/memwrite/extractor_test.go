package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

func TestAModelExtractsByFlag(t *testing.T) {
	t.Parallel()
	const secret = "sk-secret-of-the-test"
	asked := make(chan string, 1)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"choices": [{"finish_reason": "stop", "message": {"content": "{\"facts\": [{\"text\": \"Releases on Thursdays\", \"type\": \"fact\", \"subject\": \"team\", \"topic\": \"release\", \"only\": true}]}"}}]}`)
	}))
	t.Cleanup(endpoint.Close)
	db := filepath.Join(t.TempDir(), "memwrite.db")
	srv := start(t, "--db", db, "--extractor-url", endpoint.URL+"/v1", "--extractor-model", "small", "--extractor-key-file", written(t, "key", secret+"\n"))
	env := environment(t, db, srv.url)
	client, err := memwrite.New(memwrite.WithMemorySync(env["MEMORYSYNC_BASE_URL"], env["MEMORYSYNC_API_KEY"]))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	got, err := client.Add(t.Context(), memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.NewRef("note", "1")})
	if err != nil || got.Memory == nil || got.Memory.Text != "Releases on Thursdays" {
		t.Errorf("%+v, %v", got, err)
	}
	if key := <-asked; key != "Bearer "+secret {
		t.Errorf("asked with %q", key)
	}
	if strings.Contains(srv.log.String(), secret) {
		t.Error("the log holds the key")
	}
}

func TestWrongExtractorsAreRefused(t *testing.T) {
	t.Parallel()
	for say, args := range map[string][]string{
		"need --extractor-url": {"--extractor-model", "small"},
		"a model is needed":    {"--extractor-url", "https://host/v1"},
		"one of the two":       {"--extractor-url", "https://host/v1", "--extractor-model", "m", "--extractor-key", "a", "--extractor-key-file", "b"},
		"no such file":         {"--extractor-url", "https://host/v1", "--extractor-model", "m", "--extractor-key-file", "/nowhere/key"},
		"in the clear":         {"--extractor-url", "http://host/v1", "--extractor-model", "m", "--extractor-key", "a"},
		"--extractor-timeout":  {"--extractor-url", "https://host/v1", "--extractor-model", "m", "--extractor-timeout", "0s"},
	} {
		c, _, err := settled(t, args, nil, "")
		if err == nil {
			_, err = c.extract.open(slog.New(slog.DiscardHandler))
		}
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%v: says %v", args, err)
		}
	}
}

func TestTheLogSaysWhyAModelGaveNothing(t *testing.T) {
	t.Parallel()
	const input, answer = "My team ships releases every Thursday.", "an answer not to repeat"
	for why, reply := range map[string]func(http.ResponseWriter){
		"the endpoint refuses the key (401)": func(w http.ResponseWriter) { http.Error(w, answer, http.StatusUnauthorized) },
		"class=invalid_output": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"choices": [{"finish_reason": "stop", "message": {"content": "`+answer+`"}}]}`)
		},
	} {
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w) }))
		t.Cleanup(endpoint.Close)
		db := filepath.Join(t.TempDir(), "memwrite.db")
		srv := start(t, "--db", db, "--extractor-url", endpoint.URL+"/v1", "--extractor-model", "small")
		env := environment(t, db, srv.url)
		client, err := memwrite.New(memwrite.WithFishMem(env["FISHMEM_BASE_URL"], env["FISHMEM_API_KEY"]))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_, err = client.AddAndWait(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", "1"), Scope: memwrite.Scope{UserID: "acme"}, Content: input})
		if err == nil {
			t.Errorf("%s: the write succeeded", why)
		}
		if log := srv.log.String(); !strings.Contains(log, "the model gave no facts") || !strings.Contains(log, why) || strings.Contains(log, answer) || strings.Contains(log, input) {
			t.Errorf("%s: the log is %s", why, log)
		}
	}
}
