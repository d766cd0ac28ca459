package transport

import (
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects bounds how many redirects of one try are followed.
const maxRedirects = 5

// mayFollow decides about a redirect that net/http is about to follow with
// next, after via. What is not followed becomes the answer of the try.
//
// net/http turns a POST that is answered 301, 302 or 303 into a GET without a
// body and reports the GET's success as the POST's: a write that was never
// made. It also hands headers it does not know to be secret, X-API-Key among
// them, to whatever host a Location names. So a changed method is refused, and
// so is another scheme, host or port. 307 and 308 on the same host keep method
// and body and are followed (RFC 9110, 15.4.8 and 15.4.9); a read follows any
// redirect on its host.
func mayFollow(next *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || next.Method != first.Method || !sameOrigin(next.URL, first.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) &&
		strings.EqualFold(a.Hostname(), b.Hostname()) &&
		portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case strings.EqualFold(u.Scheme, "https"):
		return "443"
	default:
		return "80"
	}
}

// target is a Location without user, query and fragment, for an error to name.
func target(resp *http.Response) string {
	if resp.StatusCode < 300 || resp.StatusCode > 399 {
		return ""
	}
	u, err := resp.Location()
	if err != nil {
		return ""
	}
	return withoutQuery(u)
}

func withoutQuery(u *url.URL) string {
	if u == nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
