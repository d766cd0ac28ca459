package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var vectors struct {
	once sync.Once
	url  string
	err  error
	hold io.Closer // while it is open the throwaway lives
}

// Vectors gives the test a schema of its own on a server that has pgvector: the
// one tests share if it can be had there, else a PostgreSQL in WebAssembly with
// one session, which `npm ci` in the folder pglite installs. Where there is
// neither, the test says what it did not test.
func Vectors(tb testing.TB) string {
	tb.Helper()
	vectors.once.Do(func() {
		shared := Server(tb)
		if HasVectors(tb, shared) {
			vectors.url = shared
			return
		}
		vectors.url, vectors.hold, vectors.err = startPGlite()
	})
	if vectors.err != nil {
		missing(tb, "pgvector", vectors.err)
	}
	Exec(tb, vectors.url, "create extension if not exists vector schema public")
	return Schema(tb, vectors.url)
}

// HasVectors says whether a server has pgvector, switched on or not.
func HasVectors(tb testing.TB, url string) (has bool) {
	tb.Helper()
	Read(tb, url, &has, `select exists (select from pg_available_extensions where name = 'vector')`)
	return has
}

// startPGlite ends with this process, however that ends: it reads from it.
func startPGlite() (url string, hold io.Closer, err error) {
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(here), "pglite")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		return "", nil, fmt.Errorf("the server has no pgvector, and there is none by npm: run npm ci in %s", dir)
	}
	cmd := exec.Command("node", "serve.mjs")
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		return "", nil, errors.Join(fmt.Errorf("PGlite does not start: %s", said.String()), err)
	}
	o, err := newOneAtATime("127.0.0.1:" + strings.TrimSpace(port))
	if err != nil {
		return "", nil, err
	}
	return o.url(), in, nil
}
