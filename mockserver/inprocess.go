package mockserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"syscall"
)

// RoundTripper reaches the server without a connection: one goroutine, no
// socket, nothing that stops the clock of a testing/synctest bubble. Faults act
// on it as on a connection. Use it with a server that was started InProcess.
func (s *Server) RoundTripper() http.RoundTripper { return inProcess{s} }

type inProcess struct{ srv *Server }

var errClosed = errors.New("mockserver: the server is closed")

func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if p.srv.closing.Load() {
		return nil, errClosed
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(p.srv.ctx, cancel)
	in := req.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	} else {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			stop()
			cancel()
			return nil, err
		}
		in.Body = io.NopCloser(bytes.NewReader(body))
	}
	in.RequestURI = req.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:1"
	if in.Host == "" {
		in.Host = req.URL.Host
	}
	if len(in.Header) == 0 {
		in.Header = http.Header{}
	}

	answers := make(chan *direct, 1)
	go func() {
		defer stop()
		defer cancel()
		out := &direct{buffered: buffered{header: http.Header{}}}
		defer func() {
			if recover() != nil {
				out.aborted = true
			}
			answers <- out
		}()
		p.srv.serve(out, in)
	}()
	select {
	case out := <-answers:
		return out.response(req)
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
}

// direct is an answer on its way to a caller in this process.
type direct struct {
	buffered
	aborted bool
}

func (d *direct) response(req *http.Request) (*http.Response, error) {
	if d.status == 0 {
		if d.aborted {
			return nil, syscall.ECONNRESET
		}
		d.status = http.StatusOK
	}
	var body io.Reader = bytes.NewReader(d.body)
	length := int64(len(d.body))
	if d.aborted {
		body = io.MultiReader(body, cut{})
		if n, err := strconv.ParseInt(d.header.Get("Content-Length"), 10, 64); err == nil {
			length = n
		}
	}
	return &http.Response{
		Status: strconv.Itoa(d.status) + " " + http.StatusText(d.status), StatusCode: d.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header, Body: io.NopCloser(body), ContentLength: length, Request: req,
	}, nil
}

// cut is the end of a body that ended too early.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
