// Package synheartauth verifies requests that devices signed, by asking a Synheart Auth service. It also checks device tokens.
package synheartauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	codeForm      = regexp.MustCompile(`^[A-Z0-9_]{1,64}$`)
	deviceForm    = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	appForm       = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	originForm    = regexp.MustCompile(`^(https?)://((?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)$`)
	authorityForm = regexp.MustCompile(`^[\x21-\x2b\x2d-\x7e]{1,300}$`)
	secretForm    = regexp.MustCompile(`^[\x21-\x7e]+$`)
	timeForm      = regexp.MustCompile(`^[0-9]{10}$`)
	fieldForm     = regexp.MustCompile(`^[\x20-\x7e]{1,1000}$`)
)

// Options configures a Verifier.
type Options struct {
	// The service's origin, such as https://auth.example.com.
	Service string
	// The service credential of this backend. It is never logged.
	Credential string
	// The scheme and authority that clients send their requests to, such as https://api.example.com.
	Origin string
	// In place of Origin: networks (CIDR) whose X-Forwarded-Proto and X-Forwarded-Host are believed. "unix" stands for UNIX sockets.
	TrustedProxies []string
	// How many bytes a body may have. 1 MiB if it is 0.
	BodyLimit int64
	// The time limit of each attempt. 2 s if it is 0.
	Timeout time.Duration
	// The maximum number of attempts to ask the service about one request. 3 if it is 0.
	Attempts int
	// Allows plain http to a service that is not on loopback.
	InsecureHTTP bool
	// Where the library logs. The standard logger if it is nil.
	Log *log.Logger
}

// String hides the credential, also from %v and %+v.
func (o Options) String() string { return fmt.Sprintf("synheartauth.Options{Service: %q}", o.Service) }

// GoString hides the credential from %#v.
func (o Options) GoString() string { return o.String() }

// Assurance says what was proven about the app and the device's key at registration.
type Assurance struct {
	App    string   `json:"app"`
	Key    string   `json:"key"`
	Labels []string `json:"labels"`
}

// Identity is the device that signed a request.
type Identity struct {
	AppID           string
	DeviceID        string
	Platform        string
	Assurance       Assurance
	SignatureScheme int
	KeyAgeSeconds   int64
}

// Verification is the result for a request that may pass. If Identity is nil, the request passes only because its app is in observe
// mode, and Observed is the code that the service would have refused it with.
type Verification struct {
	Identity *Identity
	Observed string
}

// Refusal is the answer to a request that may not pass.
type Refusal struct {
	Status int
	Header http.Header
	Body   []byte
}

// Incoming is a request as the server received it.
type Incoming struct {
	Method string
	// The path, with ? and the query if there is one, as on the wire: not decoded.
	Target string
	// Every header line, also of a repeated header.
	Header http.Header
	// The raw bytes.
	Body []byte
	// The address of the other end of the connection; empty for a UNIX socket.
	Peer string
}

// Verifier verifies requests by asking one auth service. Make one for each process and share it.
type Verifier struct {
	client            *client
	url               string
	header            func() http.Header
	scheme, authority string
	networks          []*net.IPNet
	trustsUnix        bool
	bodyLimit         int64
	attempts          int
	log               *log.Logger
}

// NewVerifier makes a Verifier. It fails if an option is wrong.
func NewVerifier(options Options) (*Verifier, error) {
	v := &Verifier{bodyLimit: options.BodyLimit, attempts: options.Attempts, log: options.Log}
	if v.bodyLimit == 0 {
		v.bodyLimit = 1 << 20
	}
	if v.attempts == 0 {
		v.attempts = 3
	}
	if v.log == nil {
		v.log = log.Default()
	}
	if (options.Origin == "") == (len(options.TrustedProxies) == 0) {
		return nil, errors.New("synheartauth: set either Origin or TrustedProxies: the request itself proves neither scheme nor authority")
	}
	if !secretForm.MatchString(options.Credential) {
		return nil, errors.New("synheartauth: the credential is empty, or has a character that no credential has")
	}
	if v.bodyLimit < 0 || v.attempts < 0 {
		return nil, errors.New("synheartauth: BodyLimit and Attempts must not be negative")
	}
	if options.Origin != "" {
		found := originForm.FindStringSubmatch(options.Origin)
		if found == nil {
			return nil, fmt.Errorf("synheartauth: expected an origin such as https://api.example.com, found %q", options.Origin)
		}
		v.scheme, v.authority = found[1], found[2]
	}
	for _, text := range options.TrustedProxies {
		if text == "unix" {
			v.trustsUnix = true
			continue
		}
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return nil, fmt.Errorf("synheartauth: expected a network such as 10.0.0.0/8, found %q", text)
		}
		v.networks = append(v.networks, network)
	}
	made, parsed, err := newClient(options.Service, options.Timeout, options.InsecureHTTP)
	if err != nil {
		return nil, err
	}
	if strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, fmt.Errorf("synheartauth: expected an origin without a path, found %q", options.Service)
	}
	v.client, v.url = made, parsed.Scheme+"://"+parsed.Host+"/auth/v1/verify"
	// The header is made by a function, because printing a Verifier would show a credential in one of its fields.
	v.header = func() http.Header {
		return http.Header{"Authorization": {"Bearer " + options.Credential}, "Content-Type": {"application/json"}}
	}
	return v, nil
}

// Verify judges a request: exactly one of the two results is not nil. Call it once for each request: the service refuses a second
// call as a replay.
func (v *Verifier) Verify(ctx context.Context, request Incoming) (*Verification, *Refusal) {
	name, err := newUUID()
	if err != nil {
		// Without a new id, the service would treat a replay as a retry.
		return nil, unavailable("none", -1)
	}
	if !isFramed(request) {
		return nil, refused(400, "INVALID_REQUEST", "The body is not framed as the headers say.", name)
	}
	if int64(len(request.Body)) > v.bodyLimit {
		return nil, v.tooLarge(name)
	}
	scheme, authority := v.scheme, v.authority
	if scheme == "" {
		if scheme, authority = v.forwarded(request); scheme == "" {
			return nil, refused(
				421, "MISDIRECTED_REQUEST", "The request did not come through a proxy that this backend trusts.", name)
		}
	}
	question, err := json.Marshal(newQuestion(request, scheme, authority, name))
	if err != nil {
		return nil, unavailable(name, -1)
	}
	return v.judge(v.ask(ctx, question), request, name)
}

func (v *Verifier) tooLarge(name string) *Refusal {
	return refused(413, "PAYLOAD_TOO_LARGE", fmt.Sprintf("The body has more than %d bytes.", v.bodyLimit), name)
}

// impossible is the answer if the request cannot be described to the service. It logs the reason, for the operator.
func (v *Verifier) impossible(reason string) *Refusal {
	v.log.Printf("synheart auth: %s", reason)
	return unavailable("none", -1)
}

// forwarded returns the scheme and authority that a trusted proxy sent, if it sent exactly one of each.
func (v *Verifier) forwarded(request Incoming) (scheme, authority string) {
	schemes, authorities := request.Header.Values("X-Forwarded-Proto"), request.Header.Values("X-Forwarded-Host")
	if !v.trusts(request.Peer) || len(schemes) != 1 || len(authorities) != 1 || !authorityForm.MatchString(authorities[0]) {
		return "", ""
	}
	if schemes[0] != "http" && schemes[0] != "https" {
		return "", ""
	}
	return schemes[0], authorities[0]
}

func (v *Verifier) trusts(peer string) bool {
	if peer == "" {
		return v.trustsUnix
	}
	text, _, _ := strings.Cut(peer, "%")
	address := net.ParseIP(text)
	for _, network := range v.networks {
		if address != nil && network.Contains(address) {
			return true
		}
	}
	return false
}

// ask returns the service's answer, nil if there was none. After a failure, it asks again with the same verification id. So the
// service takes the repeated question for a retry, not for a replay.
func (v *Verifier) ask(ctx context.Context, question []byte) *answer {
	var found *answer
	for attempt := 0; attempt < v.attempts; attempt++ {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return found
			case <-time.After(50 * time.Millisecond << attempt):
			}
		}
		next, err := v.client.exchange(ctx, http.MethodPost, v.url, v.header(), question)
		if err != nil {
			v.log.Printf("synheart auth: the auth service did not answer: %v", err)
			continue
		}
		found = next
		// If the answer has Retry-After, do not retry: the phone would wait too long.
		if found.status < 500 || found.retryAfter() >= 0 {
			break
		}
	}
	return found
}

func (v *Verifier) judge(found *answer, request Incoming, name string) (*Verification, *Refusal) {
	if found == nil {
		return nil, unavailable(name, -1)
	}
	// Uses a map, because a struct also accepts member names in another case.
	var body map[string]json.RawMessage
	if json.Unmarshal(found.body, &body) != nil {
		body = nil
	}
	code, _ := text(body["error"], codeForm)
	switch {
	case found.status == 200:
		if passed := newVerification(body, request); passed != nil {
			return passed, nil
		}
	case found.status >= 400 && found.status < 500 && found.status != 429 && code != "":
		if code == "UNAUTHORIZED" || code == "FORBIDDEN" {
			v.log.Printf("synheart auth: the auth service refuses this backend's credential (%s): see `synheart-auth credentials "+
				"list`, and create one of role service for the app", code)
			return nil, unavailable(name, 30)
		}
		if string(body["verified"]) == "false" {
			return nil, relayed(found, body, code, name)
		}
	}
	if found.status != 429 && found.status < 500 {
		v.log.Printf("synheart auth: the auth service gave no verdict to a question: status %d, code %q, id %s", found.status, code, name)
	}
	return nil, unavailable(name, found.retryAfter())
}

type question struct {
	Method         string      `json:"method"`
	Scheme         string      `json:"scheme"`
	Authority      string      `json:"authority"`
	Path           string      `json:"path"`
	Query          *string     `json:"query"`
	Headers        [][2]string `json:"headers"`
	Body           *string     `json:"body,omitempty"`
	BodySHA256     string      `json:"body_sha256,omitempty"`
	VerificationID string      `json:"verification_id"`
}

func newQuestion(request Incoming, scheme, authority, name string) question {
	path, query, hasQuery := strings.Cut(request.Target, "?")
	q := question{
		Method: request.Method, Scheme: scheme, Authority: authority, Path: latin1(path), Headers: [][2]string{}, VerificationID: name,
	}
	if hasQuery {
		query = latin1(query)
		q.Query = &query
	}
	for name, values := range request.Header {
		if !isAskedAbout(name) {
			continue
		}
		for _, value := range values {
			q.Headers = append(q.Headers, [2]string{name, latin1(value)})
		}
	}
	// Signature scheme 2 signs the digest of the body, so the service does not need the body itself.
	if len(request.Header.Values("Signature-Input")) > 0 && len(request.Header.Values("X-Synheart-Sig-Version")) == 0 {
		digest := sha256.Sum256(request.Body)
		q.BodySHA256 = base64.StdEncoding.EncodeToString(digest[:])
	} else {
		body := base64.StdEncoding.EncodeToString(request.Body)
		q.Body = &body
	}
	return q
}

// latin1 converts each byte to the character of the same number, because JSON has only characters.
func latin1(text string) string {
	characters := make([]rune, len(text))
	for index := 0; index < len(text); index++ {
		characters[index] = rune(text[index])
	}
	return string(characters)
}

// isAskedAbout tells whether a header is passed on to the service. Cookies and credentials of the client are not.
func isAskedAbout(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "x-synheart-") {
		return !isReserved(name)
	}
	switch name {
	case "x-app-id", "x-device-id", "content-digest", "signature-input", "signature":
		return true
	}
	return false
}

// isReserved tells whether a handler could take the header for a verified identity. Every character except letters
// and digits counts as -, because some frameworks change characters such as _ and . to -.
func isReserved(name string) bool {
	name = strings.Map(func(character rune) rune {
		if 'a' <= character && character <= 'z' || '0' <= character && character <= '9' {
			return character
		}
		return '-'
	}, strings.ToLower(name))
	return strings.HasPrefix(name, "x-synheart-verified-") || name == "x-synheart-identity"
}

// isFramed tells whether the headers frame the body unambiguously. If there is a Content-Length, it must occur once,
// be the body's length, and have no Transfer-Encoding beside it. Ambiguous framing allows request smuggling.
func isFramed(request Incoming) bool {
	lengths := request.Header.Values("Content-Length")
	if len(lengths) == 0 {
		return true
	}
	if len(lengths) > 1 || len(request.Header.Values("Transfer-Encoding")) > 0 || !digits.MatchString(lengths[0]) {
		return false
	}
	length, err := strconv.Atoi(lengths[0])
	return err == nil && length == len(request.Body)
}

// newVerification is the verdict in an answer with status 200, nil if it has none.
func newVerification(body map[string]json.RawMessage, request Incoming) *Verification {
	observed, isCode := text(body["observed"], codeForm)
	if string(body["verified"]) == "false" && isCode {
		return &Verification{Observed: observed}
	}
	if string(body["verified"]) != "true" || body["observed"] != nil {
		return nil
	}
	app, isApp := text(body["app_id"], appForm)
	device, isDevice := text(body["device_id"], deviceForm)
	platform, _ := text(body["platform"], codeFormOfPlatforms)
	assurance := newAssurance(body["assurance"])
	scheme, isScheme := integer(body["signature_scheme"])
	age, isAge := integer(body["key_age_seconds"])
	if !isApp || !isDevice || platform == "" || assurance == nil || !isScheme || (scheme != 1 && scheme != 2) || !isAge || age < 0 {
		return nil
	}
	// App and device must be those that the request names. Otherwise the answer is about another request.
	if !isOnly(request.Header, "X-App-Id", app) || !isOnly(request.Header, "X-Device-Id", device) {
		return nil
	}
	return &Verification{Identity: &Identity{app, device, platform, *assurance, int(scheme), age}}
}

var codeFormOfPlatforms = regexp.MustCompile(`^(ios|android)$`)

func isOnly(header http.Header, name, value string) bool {
	values := header[textproto.CanonicalMIMEHeaderKey(name)]
	return len(values) == 1 && strings.Trim(values[0], " \t") == value
}

func newAssurance(data json.RawMessage) *Assurance {
	var members map[string]json.RawMessage
	var labels []json.RawMessage
	if json.Unmarshal(data, &members) != nil || json.Unmarshal(members["labels"], &labels) != nil || labels == nil {
		return nil
	}
	app, isApp := text(members["app"], nil)
	key, isKey := text(members["key"], nil)
	found := &Assurance{App: app, Key: key, Labels: []string{}}
	for _, data := range labels {
		label, isLabel := text(data, nil)
		if !isLabel {
			return nil
		}
		found.Labels = append(found.Labels, label)
	}
	if !isApp || !isKey {
		return nil
	}
	return found
}

// text returns the JSON string in data, if data is a string of this form.
func text(data json.RawMessage, form *regexp.Regexp) (string, bool) {
	var found *string
	if json.Unmarshal(data, &found) != nil || found == nil || (form != nil && !form.MatchString(*found)) {
		return "", false
	}
	return *found, true
}

// integer is a JSON number without fraction and exponent.
func integer(data json.RawMessage) (int64, bool) {
	found, err := strconv.ParseInt(string(data), 10, 64)
	return found, err == nil
}

// relayed passes a verdict of the service on to the phone. It keeps only what the phone needs to recover.
func relayed(found *answer, body map[string]json.RawMessage, code, name string) *Refusal {
	message, isMessage := text(body["message"], nil)
	if !isMessage {
		message = "The request was refused."
	}
	id, isID := text(body["request_id"], nil)
	if !isID {
		id = name
	}
	moment, isTime := integer(body["server_timestamp"])
	if !isTime {
		moment = time.Now().Unix()
	}
	refusal := newRefusal(found.status, code, cut(message, 500), cut(id, 128), moment)
	if sent := found.header.Get("X-Synheart-Server-Time"); timeForm.MatchString(sent) {
		refusal.Header.Set("X-Synheart-Server-Time", sent)
	}
	if demand := found.header.Get("X-Synheart-Assertion"); fieldForm.MatchString(demand) {
		refusal.Header.Set("X-Synheart-Assertion", demand)
	}
	if seconds := found.retryAfter(); seconds >= 0 {
		refusal.Header.Set("Retry-After", strconv.Itoa(seconds))
	}
	return refusal
}

func cut(text string, length int) string {
	if len(text) > length {
		return strings.ToValidUTF8(text[:length], "")
	}
	return text
}

// refused is a refusal that this backend itself decides, in the protocol's form.
func refused(status int, code, message, name string) *Refusal {
	return newRefusal(status, code, message, name, time.Now().Unix())
}

// unavailable is the answer if the service gave no verdict: the request does not pass.
func unavailable(name string, seconds int) *Refusal {
	if seconds < 0 {
		seconds = 5
	}
	refusal := refused(503, "SERVICE_UNAVAILABLE", "The request cannot be verified now.", name)
	refusal.Header.Set("Retry-After", strconv.Itoa(seconds))
	return refusal
}

func newRefusal(status int, code, message, id string, moment int64) *Refusal {
	body, _ := json.Marshal(struct {
		Error     string `json:"error"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
		Time      int64  `json:"server_timestamp"`
	}{code, message, id, moment})
	return &Refusal{status, http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}, "Cache-Control": {"no-store"},
		"X-Synheart-Error": {code},
	}, body}
}

// newUUID is a random UUID (version 4).
func newUUID() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
