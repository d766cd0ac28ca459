package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/model"
)

const key = "sk-secret-of-the-test"

// completion is an answer of an endpoint with this content.
func completion(content string) string {
	c, _ := json.Marshal(content)
	return `{"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": ` + string(c) + `}}]}`
}

// scripted is an endpoint that answers every call the same way.
func scripted(t *testing.T, answer http.HandlerFunc, timeout time.Duration) *model.Extractor {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	e, err := model.New(model.Options{URL: srv.URL + "/v1/", Model: "small", Key: key, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestTheModelIsAskedForFacts(t *testing.T) {
	t.Parallel()
	var asked struct {
		Model    string
		Messages []struct{ Role, Content string }
		Format   struct {
			Type   string
			Schema struct {
				Strict bool
				Schema struct{ Required []string }
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	e := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, completion(`{"facts": [
			{"text": " Ships releases every Thursday ", "type": "Fact", "subject": "Team", "topic": "Release Day", "only": false},
			{"text": "Lives in Oslo", "type": "identity", "subject": "self", "topic": "home", "only": true}]}`))
	}, time.Minute)
	got, err := e.Extract(t.Context(), protocol.Input{Text: `My team ships "releases" every Thursday.`})
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := (protocol.Fact{Text: "Ships releases every Thursday", Type: "fact", Key: "team/release_day"}); got[0] != want {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	if want := (protocol.Fact{Text: "Lives in Oslo", Type: "identity", Key: "self/home", Replaces: true}); got[1] != want {
		t.Errorf("got %+v, want %+v", got[1], want)
	}
	if asked.Model != "small" || len(asked.Messages) != 2 || asked.Messages[0].Role != "system" || asked.Messages[1].Role != "user" ||
		!strings.Contains(asked.Messages[1].Content, `\"releases\"`) || asked.Format.Type != "json_schema" || !asked.Format.Schema.Strict ||
		len(asked.Format.Schema.Schema.Required) != 1 {
		t.Errorf("asked %+v", asked)
	}
}

func TestNoFactIsASuccess(t *testing.T) {
	t.Parallel()
	got, err := scripted(t, says(200, completion(`{"facts": []}`)), 0).Extract(t.Context(), protocol.Input{Text: "Thanks!"})
	if err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEachFailureHasItsClass(t *testing.T) {
	t.Parallel()
	const secret = "the input's own words"
	quota := `{"error": {"code": "insufficient_quota", "message": "` + secret + `"}}`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   protocol.Class
	}{
		"401":                {says(401, secret), protocol.Authorization},
		"403":                {says(403, secret), protocol.Authorization},
		"402":                {says(402, secret), protocol.CreditsError},
		"429 without credit": {says(429, quota), protocol.CreditsError},
		"429":                {says(429, `{"error": {"code": "rate_limit_exceeded"}}`), protocol.Infrastructure},
		"429, code a number": {says(429, `{"error": {"code": 429}}`), protocol.Infrastructure},
		"500":                {says(500, secret), protocol.Infrastructure},
		"503":                {says(503, ""), protocol.Infrastructure},
		"408":                {says(408, ""), protocol.ProviderTimeout},
		"504":                {says(504, ""), protocol.ProviderTimeout},
		"400":                {says(400, `{"error": {"code": "context_length_exceeded"}}`), protocol.Rejected},
		"404":                {says(404, ""), protocol.Rejected},
		"a redirect":         {http.RedirectHandler("https://elsewhere.example/", http.StatusTemporaryRedirect).ServeHTTP, protocol.Rejected},
		"a page":             {says(200, "<html>"+secret), protocol.InvalidOutput},
		"no choice":          {says(200, `{"choices": []}`), protocol.InvalidOutput},
		"no content":         {says(200, `{"choices": [{"message": {}}]}`), protocol.InvalidOutput},
		"cut by the model":   {says(200, strings.Replace(completion(`{"facts": []}`), "stop", "length", 1)), protocol.InvalidOutput},
		"refused":            {says(200, `{"choices": [{"message": {"refusal": "`+secret+`"}}]}`), protocol.Rejected},
		"filtered":           {says(200, strings.Replace(completion(`{"facts": []}`), "stop", "content_filter", 1)), protocol.Rejected},
		"prose":              {says(200, completion("Here are the facts: "+secret)), protocol.InvalidOutput},
		"prose behind":       {says(200, completion(`{"facts": []} and so on`)), protocol.InvalidOutput},
		"no list":            {says(200, completion(`{}`)), protocol.InvalidOutput},
		"another field":      {says(200, completion(`{"facts": [], "note": "x"}`)), protocol.InvalidOutput},
		"an empty fact":      {says(200, completion(`{"facts": [{"text": " ", "type": "fact", "subject": "self", "topic": "x", "only": false}]}`)), protocol.InvalidOutput},
		"a long fact":        {says(200, completion(`{"facts": [{"text": "`+strings.Repeat("x", 1001)+`", "type": "fact", "subject": "self", "topic": "x", "only": false}]}`)), protocol.InvalidOutput},
		"no topic":           {says(200, completion(`{"facts": [{"text": "x", "type": "fact", "subject": "self", "topic": "", "only": false}]}`)), protocol.InvalidOutput},
		"too long":           {says(200, strings.Repeat(" ", 1<<20+1)), protocol.InvalidOutput},
		"cut on the way": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "{")
		}, protocol.Infrastructure},
		"reset": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, protocol.Infrastructure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scripted(t, c.answer, 0).Extract(t.Context(), protocol.Input{Text: secret})
			var f *protocol.Failure
			if !errors.As(err, &f) || f.Class != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), key) {
				t.Errorf("the error quotes: %v", err)
			}
		})
	}
}

func TestASlowModelTimesOut(t *testing.T) {
	t.Parallel()
	held := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	_, err := scripted(t, held, 20*time.Millisecond).Extract(t.Context(), protocol.Input{Text: "x"})
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Class != protocol.ProviderTimeout {
		t.Errorf("got %v", err)
	}
	cause := errors.New("the runner stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := scripted(t, held, time.Minute).Extract(ctx, protocol.Input{Text: "x"}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestNobodyThereIsInfrastructure(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	e, err := model.New(model.Options{URL: srv.URL, Model: "small"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Extract(t.Context(), protocol.Input{Text: "x"})
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Class != protocol.Infrastructure {
		t.Errorf("got %v", err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for i, o := range []model.Options{
		{}, {URL: "https://h/v1"}, {URL: "ftp://h", Model: "m"}, {URL: "https://user:" + key + "@h", Model: "m"}, {URL: "https://h?key=" + key, Model: "m"},
		{URL: "http://models.example/v1", Model: "m", Key: key}, {URL: "https://h", Model: "m", Key: key + "\n"}, {URL: "://" + key, Model: "m"},
	} {
		if _, err := model.New(o); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%s: says %v", strconv.Itoa(i), err)
		}
	}
	for _, o := range []model.Options{{URL: "http://127.0.0.1:1/v1", Model: "m", Key: key}, {URL: "http://models.example/v1", Model: "m"}} {
		if _, err := model.New(o); err != nil {
			t.Error(err)
		}
	}
}
