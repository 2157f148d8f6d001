// The server that testing/drive.py drives.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	synheartauth "github.com/synheart-ai/synheart-auth/Backends/go"
)

type start struct {
	Service      string  `json:"service"`
	Credential   string  `json:"credential"`
	QuickTimeout float64 `json:"quick_timeout"`
	Instances    map[string]struct {
		Origin         string   `json:"origin"`
		TrustedProxies []string `json:"trusted_proxies"`
		BodyLimit      int64    `json:"body_limit"`
		Attempts       int      `json:"attempts"`
	} `json:"instances"`
}

type tokenQuestion struct {
	Do        string   `json:"do"`
	Token     string   `json:"token"`
	Now       int64    `json:"now"`
	Monotonic int64    `json:"monotonic"`
	JWKSURL   string   `json:"jwks_url"`
	Issuer    string   `json:"issuer"`
	Audience  string   `json:"audience"`
	TokenType string   `json:"token_type"`
	Channels  []string `json:"channels"`
	Leeway    int64    `json:"leeway"`
}

func app(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		log.Fatal(err)
	}
	found := synheartauth.VerificationOf(r.Context())
	answer := map[string]any{"identity": nil, "observed": nil, "body": base64.StdEncoding.EncodeToString(body)}
	if found.Observed != "" {
		answer["observed"] = found.Observed
	}
	if i := found.Identity; i != nil {
		answer["identity"] = map[string]any{
			"app_id": i.AppID, "device_id": i.DeviceID, "platform": i.Platform, "assurance": i.Assurance,
			"signature_scheme": i.SignatureScheme, "key_age_seconds": i.KeyAgeSeconds,
		}
	}
	reserved := []string{}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.Contains(name, "verified") || strings.Contains(name, "identity") {
			reserved = append(reserved, name)
		}
	}
	answer["reserved"] = reserved
	_ = json.NewEncoder(w).Encode(answer)
}

func main() {
	input := bufio.NewReader(os.Stdin)
	line, _ := input.ReadBytes('\n')
	var configuration start
	if err := json.Unmarshal(line, &configuration); err != nil {
		log.Fatal(err)
	}
	handlers := map[string]http.Handler{}
	for name, options := range configuration.Instances {
		timeout := 20 * time.Second
		if name == "quick" {
			timeout = time.Duration(configuration.QuickTimeout * float64(time.Second))
		}
		verifier, err := synheartauth.NewVerifier(synheartauth.Options{
			Service: configuration.Service, Credential: configuration.Credential, Origin: options.Origin,
			TrustedProxies: options.TrustedProxies, BodyLimit: options.BodyLimit, Attempts: options.Attempts, Timeout: timeout,
		})
		if err != nil {
			log.Fatal(err)
		}
		handlers[name] = verifier.Middleware(http.HandlerFunc(app))
		if name == "twice" {
			handlers[name] = verifier.Middleware(handlers[name])
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("{\"port\": %d}\n", listener.Addr().(*net.TCPAddr).Port)
	go func() {
		log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// If the target is in absolute form, Go uses the target's host as the Host header.
			name, _, _ := strings.Cut(r.Host, ".")
			if handlers[name] == nil {
				name = "origin"
			}
			handlers[name].ServeHTTP(w, r)
		})))
	}()
	answerTokens(input)
}

func answerTokens(input *bufio.Reader) {
	var verifier *synheartauth.TokenVerifier
	var now, monotonic int64
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var question tokenQuestion
		if err := json.Unmarshal(line, &question); err != nil {
			log.Fatal(err)
		}
		if question.Do == "verifier" {
			leeway := time.Duration(question.Leeway) * time.Second
			verifier, err = synheartauth.NewTokenVerifier(synheartauth.TokenOptions{
				Issuer: question.Issuer, Audience: question.Audience, JWKSURL: question.JWKSURL, TokenType: question.TokenType,
				Channels: question.Channels, Leeway: &leeway, Timeout: 20 * time.Second,
				Now:       func() time.Time { return time.Unix(now, 0) },
				Monotonic: func() time.Duration { return time.Duration(monotonic) * time.Second },
			})
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("{}")
			continue
		}
		now, monotonic = question.Now, question.Monotonic
		answer := map[string]any{"outcome": "valid"}
		switch token, err := verifier.Verify(context.Background(), question.Token); {
		case errors.Is(err, synheartauth.ErrTokenRefused):
			answer["outcome"] = "refused"
		case errors.Is(err, synheartauth.ErrKeysUnavailable):
			answer["outcome"] = "unavailable"
		case err != nil:
			log.Fatal(err)
		default:
			answer["device_id"], answer["app_id"], answer["channel"] = token.DeviceID, token.AppID, token.Channel
			answer["platform"], answer["assurance"], answer["expires_at"] = token.Platform, token.Assurance, token.ExpiresAt.Unix()
		}
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}
