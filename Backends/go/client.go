package synheartauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// The longest answer that is read, in bytes. The service's answers have a few hundred bytes.
const answerLimit = 65_536

var digits = regexp.MustCompile(`^[0-9]+$`)

// client makes HTTP requests to the service. It keeps connections open, has one deadline for each exchange, limits the length of
// answers, follows no redirects and uses no proxy.
type client struct {
	http    *http.Client
	timeout time.Duration
}

type answer struct {
	status int
	header http.Header
	// Nil if the answer is longer than the limit.
	body []byte
}

func newClient(address string, timeout time.Duration, insecureHTTP bool) (*client, *url.URL, error) {
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" || parsed.User != nil {
		return nil, nil, fmt.Errorf("synheartauth: expected an origin such as https://auth.example.com, found %q", address)
	}
	if parsed.Scheme == "http" && !insecureHTTP && !isLoopback(parsed.Hostname()) {
		return nil, nil, fmt.Errorf("synheartauth: %q is plain http to another host: use https, or set InsecureHTTP", address)
	}
	if timeout == 0 {
		timeout = 2 * time.Second
	}
	if timeout < 0 {
		return nil, nil, errors.New("synheartauth: Timeout must be above 0")
	}
	return &client{
		timeout: timeout,
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
				MaxResponseHeaderBytes: answerLimit,
			},
		},
	}, parsed, nil
}

// exchange makes one request. It fails if no whole answer comes within the timeout.
func (c *client) exchange(ctx context.Context, method, address string, header http.Header, body []byte) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	// Without GetBody, the transport does not send the request again by itself.
	request, err := http.NewRequestWithContext(ctx, method, address, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(len(body))
	if len(body) == 0 {
		request.Body = nil
	}
	request.Header = header.Clone()
	response, err := c.http.Do(request)
	if err != nil {
		// The service may have restarted: drop the other idle connections too.
		c.http.CloseIdleConnections()
		return nil, err
	}
	defer response.Body.Close()
	found, err := io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err != nil {
		c.http.CloseIdleConnections()
		return nil, err
	}
	if len(found) > answerLimit {
		found = nil
	}
	return &answer{response.StatusCode, response.Header, found}, nil
}

// retryAfter is the value of the Retry-After header in seconds, at most 300. It is -1 if the header is absent or not a number.
func (a *answer) retryAfter() int {
	text := a.header.Get("Retry-After")
	if !digits.MatchString(text) {
		return -1
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds > 300 {
		return 300
	}
	return seconds
}

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || (address != nil && address.IsLoopback())
}
