package synheartauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	tokenLimit = 8192
	tokenLife  = 600
	// How long a key set is fresh: its max-age, limited to these bounds, or usualLife if it has none.
	shortestLife, usualLife, longestLife = time.Minute, 5 * time.Minute, time.Hour
	// How long an old key set stays valid while the service cannot be reached.
	staleLife = time.Hour
	// The pause between two attempts to read the keys: for an unknown kid, and after a failure.
	unknownPause, failurePause = time.Minute, 5 * time.Second
)

var maxAge = regexp.MustCompile(`(?:^|[\s,])max-age=([0-9]{1,9})(?:$|[\s,])`)

// ErrTokenRefused is wrapped by every error about the token itself. Answer such a request with status 401.
var ErrTokenRefused = errors.New("synheartauth: the token is refused")

// ErrKeysUnavailable says that the published keys cannot be read now. Answer the request with status 503.
var ErrKeysUnavailable = errors.New("synheartauth: the auth service's keys could not be read")

// TokenOptions configures a TokenVerifier.
type TokenOptions struct {
	// The expected iss: the service's public origin.
	Issuer string
	// The audience of this backend. It must match exactly.
	Audience string
	// The URL of the published keys. If it is empty: Issuer/auth/v1/.well-known/jwks.json.
	JWKSURL string
	// The expected typ, which is the app's signature.token_type. If this option is empty: synheart-device+jwt.
	TokenType string
	// The accepted channels. If the list is nil, only production is accepted.
	Channels []string
	// How much the clocks of the service and of this backend may differ, at most a minute. 5 s if it is nil.
	Leeway *time.Duration
	// The time limit for reading the keys. 2 s if it is 0.
	Timeout      time.Duration
	InsecureHTTP bool
	Log          *log.Logger
	// The wall clock and a monotonic clock, for tests. Nil: those of the system.
	Now       func() time.Time
	Monotonic func() time.Duration
}

// DeviceToken is the content of a token.
type DeviceToken struct {
	DeviceID, AppID, Audience, Channel, Platform string
	Assurance                                    Assurance
	IssuedAt, ExpiresAt                          time.Time
	TokenID                                      string
	// The device's public key as a JWK.
	DeviceKey json.RawMessage
}

// TokenVerifier checks the tokens of one issuer. Make one for each process and share it.
type TokenVerifier struct {
	options TokenOptions
	leeway  time.Duration
	keys    *keySet
}

// NewTokenVerifier makes a TokenVerifier. It fails if an option is wrong.
func NewTokenVerifier(options TokenOptions) (*TokenVerifier, error) {
	if options.Issuer == "" || options.Audience == "" {
		return nil, errors.New("synheartauth: Issuer and Audience must not be empty")
	}
	if options.TokenType == "" {
		options.TokenType = "synheart-device+jwt"
	}
	if options.Channels == nil {
		options.Channels = []string{"production"}
	}
	leeway := 5 * time.Second
	if options.Leeway != nil {
		leeway = *options.Leeway
	}
	if leeway < 0 || leeway > time.Minute {
		return nil, errors.New("synheartauth: Leeway must be 0 to 60 s")
	}
	if options.JWKSURL == "" {
		options.JWKSURL = strings.TrimRight(options.Issuer, "/") + "/auth/v1/.well-known/jwks.json"
	}
	if options.Log == nil {
		options.Log = log.Default()
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Monotonic == nil {
		begun := time.Now()
		options.Monotonic = func() time.Duration { return time.Since(begun) }
	}
	made, parsed, err := newClient(options.JWKSURL, options.Timeout, options.InsecureHTTP)
	if err != nil {
		return nil, err
	}
	return &TokenVerifier{options, leeway, &keySet{client: made, url: parsed.String(), now: options.Monotonic, log: options.Log}}, nil
}

func refuse(reason string) error { return fmt.Errorf("%w: %s", ErrTokenRefused, reason) }

// Verify checks the token that follows "Bearer" in the Authorization header. Its errors wrap ErrTokenRefused or ErrKeysUnavailable.
func (v *TokenVerifier) Verify(ctx context.Context, token string) (*DeviceToken, error) {
	if len(token) > tokenLimit {
		return nil, refuse("longer than 8192 bytes")
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, refuse("not three parts")
	}
	header, claims := object(parts[0]), object(parts[1])
	signature, isEncoded := decode(parts[2])
	if header == nil || claims == nil || !isEncoded {
		return nil, refuse("no base64url of JSON objects")
	}
	algorithm, _ := text(header["alg"], nil)
	kind, _ := text(header["typ"], nil)
	if algorithm != "ES256" || kind != v.options.TokenType || header["crit"] != nil {
		return nil, refuse("another alg or typ")
	}
	kid, _ := text(header["kid"], nil)
	if kid == "" || len(kid) > 128 {
		return nil, refuse("no kid")
	}
	public, err := v.keys.key(ctx, kid)
	if err != nil {
		return nil, err
	}
	if public == nil {
		return nil, refuse("an unknown kid")
	}
	if len(signature) != 64 {
		return nil, refuse("a signature that has not 64 bytes")
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	if !ecdsa.Verify(public, digest[:], r, s) {
		return nil, refuse("a wrong signature")
	}
	return v.read(claims)
}

func (v *TokenVerifier) read(claims map[string]json.RawMessage) (*DeviceToken, error) {
	if issuer, _ := text(claims["iss"], nil); issuer != v.options.Issuer {
		return nil, refuse("another issuer")
	}
	if audience, _ := text(claims["aud"], nil); audience != v.options.Audience {
		return nil, refuse("another audience")
	}
	issued, isIssued := integer(claims["iat"])
	expires, isExpires := integer(claims["exp"])
	if !isIssued || !isExpires || issued < 0 || expires < issued || expires-issued > tokenLife {
		return nil, refuse("no life of at most 600 seconds")
	}
	now := v.options.Now()
	if time.Unix(issued, 0).After(now.Add(v.leeway)) {
		return nil, refuse("not valid yet")
	}
	if !now.Before(time.Unix(expires, 0).Add(v.leeway)) {
		return nil, refuse("expired")
	}
	texts := map[string]string{}
	for _, name := range []string{"sub", "app_id", "channel", "platform", "jti"} {
		if texts[name], _ = text(claims[name], nil); texts[name] == "" {
			return nil, refuse("a claim is missing")
		}
	}
	assurance := newAssurance(claims["assurance"])
	var confirmation, jwk map[string]json.RawMessage
	if assurance == nil || json.Unmarshal(claims["cnf"], &confirmation) != nil || json.Unmarshal(confirmation["jwk"], &jwk) != nil ||
		jwk == nil {
		return nil, refuse("a claim is missing")
	}
	isAccepted := false
	for _, channel := range v.options.Channels {
		isAccepted = isAccepted || channel == texts["channel"]
	}
	if !isAccepted {
		return nil, refuse("another channel")
	}
	if texts["channel"] == "production" && (assurance.App == "development" || assurance.App == "test") {
		return nil, refuse("an assurance that production does not accept")
	}
	return &DeviceToken{
		texts["sub"], texts["app_id"], v.options.Audience, texts["channel"], texts["platform"], *assurance, time.Unix(issued, 0),
		time.Unix(expires, 0), texts["jti"], confirmation["jwk"],
	}, nil
}

// keySet is the published keys: kept for their max-age, read again for an unknown kid at most once a minute.
type keySet struct {
	client *client
	url    string
	now    func() time.Duration
	log    *log.Logger

	mutex           sync.Mutex
	keys            map[string]*ecdsa.PublicKey
	hasRead, hasAsk bool
	readAt, askedAt time.Duration
	failed          bool
	life            time.Duration
	// Closed when the running read of the keys ends; nil if no read is running. Only one read runs at a time, because a
	// second one would fetch the same keys.
	reading chan struct{}
}

func (k *keySet) key(ctx context.Context, kid string) (*ecdsa.PublicKey, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	now := k.now()
	isOld := !k.hasRead || now-k.readAt >= k.life
	// A caller that needs a known, fresh key does not wait for a running read.
	if isOld || k.keys[kid] == nil {
		pause := unknownPause
		if k.failed {
			pause = failurePause
		} else if isOld {
			pause = 0
		}
		if k.reading == nil && (!k.hasAsk || now-k.askedAt >= pause) {
			k.hasAsk, k.askedAt, k.failed = true, now, true
			k.reading = make(chan struct{})
			go k.read(now)
		}
		if err := k.wait(ctx); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrKeysUnavailable, err)
		}
	}
	if !k.hasRead || now-k.readAt >= k.life+staleLife {
		return nil, ErrKeysUnavailable
	}
	return k.keys[kid], nil
}

// wait releases the mutex until the running read of the keys ends. It fails if the caller's context ends first.
func (k *keySet) wait(ctx context.Context) error {
	reading := k.reading
	if reading == nil {
		return nil
	}
	k.mutex.Unlock()
	defer k.mutex.Lock()
	select {
	case <-reading:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *keySet) read(now time.Duration) {
	// Does not use the caller's context, because other callers wait for these keys too.
	found, err := k.client.exchange(context.Background(), http.MethodGet, k.url, http.Header{"Accept": {"application/json"}}, nil)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	close(k.reading)
	k.reading = nil
	if err != nil {
		k.log.Printf("synheart auth: the auth service's keys could not be read: %v", err)
		return
	}
	keys := keysOf(found.body)
	if found.status != 200 || keys == nil {
		k.log.Printf("synheart auth: the auth service's keys could not be read: status %d", found.status)
		return
	}
	k.life = usualLife
	if match := maxAge.FindStringSubmatch(found.header.Get("Cache-Control")); match != nil {
		seconds, _ := strconv.Atoi(match[1])
		k.life = time.Duration(seconds) * time.Second
		if k.life < shortestLife {
			k.life = shortestLife
		} else if k.life > longestLife {
			k.life = longestLife
		}
	}
	k.keys, k.hasRead, k.readAt, k.failed = keys, true, now, false
}

// keysOf returns the public keys that can verify tokens, by kid, or nil if body is no valid key set. It skips keys of other types.
func keysOf(body []byte) map[string]*ecdsa.PublicKey {
	var set map[string]json.RawMessage
	var listed []map[string]json.RawMessage
	if json.Unmarshal(body, &set) != nil || json.Unmarshal(set["keys"], &listed) != nil || listed == nil {
		return nil
	}
	keys := map[string]*ecdsa.PublicKey{}
	for _, jwk := range listed {
		is := func(name, value string, optional bool) bool {
			found, _ := text(jwk[name], nil)
			return found == value || (optional && jwk[name] == nil)
		}
		if !is("kty", "EC", false) || !is("crv", "P-256", false) || !is("use", "sig", true) || !is("alg", "ES256", true) {
			continue
		}
		kid, hasKid := text(jwk["kid"], nil)
		xText, _ := text(jwk["x"], nil)
		yText, _ := text(jwk["y"], nil)
		xBytes, isX := decode(xText)
		yBytes, isY := decode(yText)
		if !hasKid || !isX || !isY || len(xBytes) != 32 || len(yBytes) != 32 {
			return nil
		}
		x, y := new(big.Int).SetBytes(xBytes), new(big.Int).SetBytes(yBytes)
		if !elliptic.P256().IsOnCurve(x, y) {
			return nil
		}
		keys[kid] = &ecdsa.PublicKey{Curve: elliptic.P256(), X: x, Y: y}
	}
	return keys
}

// decode decodes base64url strictly. It refuses padding, other characters, and text that differs from an encoder's output.
func decode(text string) ([]byte, bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return data, err == nil && base64.RawURLEncoding.EncodeToString(data) == text
}

func object(text string) map[string]json.RawMessage {
	data, isEncoded := decode(text)
	var members map[string]json.RawMessage
	if !isEncoded || json.Unmarshal(data, &members) != nil {
		return nil
	}
	return members
}
