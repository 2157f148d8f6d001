package synheartauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	secret = "a-secret-of-this-test"
	origin = "https://api.example.com"
)

// service imitates the auth service. It accepts every request, as the device that the request names.
func service(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked question
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		device := ""
		for _, line := range asked.Headers {
			if strings.EqualFold(line[0], "x-device-id") {
				device = line[1]
			}
		}
		fmt.Fprintf(w, `{"verified": true, "app_id": "com.example.app", "device_id": %q, "platform": "ios", "signature_scheme": 2,`+
			`"assurance": {"app": "app-attest", "key": "app-vouched", "labels": []}, "key_age_seconds": 1}`, device)
	}))
	t.Cleanup(server.Close)
	return server
}

func signed(device string) http.Header {
	return http.Header{"X-App-Id": {"com.example.app"}, "X-Device-Id": {device}}
}

func device(index int) string { return fmt.Sprintf("123e4567-e89b-42d3-a456-%012d", index) }

func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	good := Options{Service: "https://auth.example.com", Credential: secret, Origin: origin}
	changes := map[string]func(*Options){
		"no origin":       func(o *Options) { o.Origin = "" },
		"both":            func(o *Options) { o.TrustedProxies = []string{"10.0.0.0/8"} },
		"no network":      func(o *Options) { o.Origin, o.TrustedProxies = "", []string{"*"} },
		"negative limit":  func(o *Options) { o.BodyLimit = -1 },
		"negative tries":  func(o *Options) { o.Attempts = -1 },
		"negative time":   func(o *Options) { o.Timeout = -1 },
		"other host":      func(o *Options) { o.Service = "http://auth:8080" },
		"no credential":   func(o *Options) { o.Credential = "" },
		"a line feed":     func(o *Options) { o.Credential = secret + "\n" },
		"a space":         func(o *Options) { o.Credential = secret + " x" },
		"relative origin": func(o *Options) { o.Origin = "api.example.com" },
		"origin and path": func(o *Options) { o.Origin = origin + "/" },
		"user in origin":  func(o *Options) { o.Origin = "https://a@b" },
	}
	for _, wrong := range []string{"auth.example.com", "ftp://a", "https://", "https://a/auth", "https://a?x", "https://a@b", ""} {
		wrong := wrong
		changes["service "+wrong] = func(o *Options) { o.Service = wrong }
	}
	if _, err := NewVerifier(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range changes {
		options := good
		change(&options)
		_, err := NewVerifier(options)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	minute := time.Minute + 1
	for _, options := range []TokenOptions{
		{Issuer: "https://a"}, {Issuer: "synheart-auth", Audience: "a"}, {Issuer: "https://a", Audience: "a", Leeway: &minute},
	} {
		if _, err := NewTokenVerifier(options); err == nil {
			t.Errorf("%+v", options)
		}
	}
}

func TestTheCredentialIsNotShown(t *testing.T) {
	options := Options{Service: "https://auth.example.com", Credential: secret, Origin: origin}
	verifier, err := NewVerifier(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, value := range []any{options, &options, verifier, *verifier} {
			if strings.Contains(fmt.Sprintf(format, value), secret) {
				t.Errorf("%s of %T", format, value)
			}
		}
	}
}

func TestPeersOfTrustedProxies(t *testing.T) {
	verifier, err := NewVerifier(Options{
		Service: service(t).URL, Credential: secret, TrustedProxies: []string{"10.0.0.0/8", "fd00::/8", "unix"}})
	if err != nil {
		t.Fatal(err)
	}
	header := signed(device(1))
	header.Set("X-Forwarded-Proto", "https")
	header.Set("X-Forwarded-Host", "api.example.com")
	for peer, passes := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "fd00::1": true, "": true, "11.1.2.3": false, "::1": false, "10.1.2.3, 1.2.3.4": false,
	} {
		_, refusal := verifier.Verify(context.Background(), Incoming{Method: "GET", Target: "/", Header: header, Peer: peer})
		if passes != (refusal == nil) {
			t.Errorf("%q: %v", peer, refusal)
		}
	}
}

func TestRequestsAtOnceDoNotGetTheAnswersOfOthers(t *testing.T) {
	verifier, err := NewVerifier(Options{Service: service(t).URL, Credential: secret, Origin: origin, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	backend := httptest.NewServer(verifier.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, IdentityOf(r.Context()).DeviceID, string(body))
	})))
	defer backend.Close()
	var group sync.WaitGroup
	for index := 0; index < 200; index++ {
		group.Add(1)
		go func(index int) {
			defer group.Done()
			request, _ := http.NewRequest("POST", backend.URL, strings.NewReader("body"))
			request.Header = signed(device(index))
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if text, _ := io.ReadAll(response.Body); string(text) != device(index)+"body" {
				t.Errorf("%d: %s", index, text)
			}
		}(index)
	}
	group.Wait()
}

func TestHTTP2HasItsBodyVerified(t *testing.T) {
	verifier, err := NewVerifier(Options{Service: service(t).URL, Credential: secret, Origin: origin, BodyLimit: 4, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	backend := httptest.NewUnstartedServer(verifier.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Proto, string(body))
	})))
	backend.EnableHTTP2 = true
	backend.StartTLS()
	defer backend.Close()
	for body, expected := range map[string]string{"body": "HTTP/2.0body", "bodies": ""} {
		// The body has no length and is not chunked. Only HTTP/2 can send such a body.
		request, _ := http.NewRequest("POST", backend.URL, io.MultiReader(strings.NewReader(body)))
		request.Header = signed(device(1))
		response, err := backend.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if expected != "" && string(text) != expected || expected == "" && response.StatusCode != 413 {
			t.Errorf("%d %s", response.StatusCode, text)
		}
	}
}

func TestABodyThatAnotherHandlerReadFirstIsRefused(t *testing.T) {
	var lines bytes.Buffer
	verifier, err := NewVerifier(Options{
		Service: service(t).URL, Credential: secret, Origin: origin, Timeout: 20 * time.Second, Log: log.New(&lines, "", 0)})
	if err != nil {
		t.Fatal(err)
	}
	verified := verifier.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.FormValue("a")) }))
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/form":
			_ = r.ParseForm()
		case "/multipart":
			_ = r.ParseMultipartForm(1000)
		}
		verified.ServeHTTP(w, r)
	}))
	defer backend.Close()
	form, multipart := "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
	part := "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n"
	for _, c := range []struct {
		path, kind, body string
		status           int
	}{
		{"/", form, "a=1", 200}, {"/form", form, "a=1", 503}, {"/form", form, "", 200},
		{"/", multipart, part, 200}, {"/multipart", multipart, part, 503},
	} {
		request, _ := http.NewRequest("POST", backend.URL+c.path, nil)
		if c.body != "" {
			// The body has no length, so it is sent in chunks.
			request, _ = http.NewRequest("POST", backend.URL+c.path, io.MultiReader(strings.NewReader(c.body)))
		}
		request.Header = signed(device(1))
		request.Header.Set("Content-Type", c.kind)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status || (c.status == 200 && c.body != "" && string(text) != "1") {
			t.Errorf("%s %s: %d %s", c.path, c.kind, response.StatusCode, text)
		}
	}
	if strings.Count(lines.String(), "before it was verified") != 2 {
		t.Error(lines.String())
	}
}

func TestACallerThatLeavesEndsTheQuestion(t *testing.T) {
	released := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	defer silent.Close()
	defer close(released)
	var lines bytes.Buffer
	verifier, err := NewVerifier(Options{
		Service: silent.URL, Credential: secret, Origin: origin, Timeout: time.Minute, Log: log.New(&lines, "", 0)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, refusal := verifier.Verify(ctx, Incoming{Method: "GET", Target: "/", Header: signed(device(1))})
	if refusal == nil || refusal.Status != 503 || strings.Contains(lines.String(), secret) {
		t.Errorf("%v %s", refusal, lines.String())
	}
}

// Any point of the curve is a valid public key. This is the curve's generator.
const keySetOfOne = `{"keys": [{"kty": "EC", "crv": "P-256", "kid": "known", "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",` +
	`"y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}]}`

func TestAFreshKeyDoesNotWaitForAReader(t *testing.T) {
	var monotonic atomic.Int64
	hangs, released := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if monotonic.Load() > 0 {
			close(hangs)
			<-released
		}
		fmt.Fprint(w, keySetOfOne)
	}))
	defer server.Close()
	verifier, err := NewTokenVerifier(TokenOptions{
		Issuer: "https://auth.example.com", Audience: "a", JWKSURL: server.URL, Timeout: time.Minute,
		Monotonic: func() time.Duration { return time.Duration(monotonic.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	isKnown := make(chan bool, 2)
	ask := func(ctx context.Context, kid string) {
		found, err := verifier.keys.key(ctx, kid)
		isKnown <- found != nil && err == nil
	}
	if ask(context.Background(), "known"); !<-isKnown {
		t.Fatal("the key set is not read")
	}
	monotonic.Store(int64(100 * time.Second))
	unknown := make(chan error, 1)
	go func() {
		_, err := verifier.keys.key(context.Background(), "unknown")
		unknown <- err
	}()
	<-hangs
	defer func() {
		close(released)
		if err := <-unknown; err != nil {
			t.Error(err)
		}
	}()
	go ask(context.Background(), "known")
	select {
	case found := <-isKnown:
		if !found {
			t.Error("the key is not known any more")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a key that is known waits for the reader")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := verifier.keys.key(ctx, "unknown"); !errors.Is(err, ErrKeysUnavailable) {
		t.Error(err)
	}
}
