// Device tokens with go-oidc. docs/tokens.md shows the type and its functions. main talks to check.py.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"

	oidc "github.com/coreos/go-oidc"
)

// DeviceTokens checks device tokens. Keep one for the life of the process: it caches the keys.
type DeviceTokens struct {
	verifier           *oidc.IDTokenVerifier
	tokenType, channel string
}

// NewDeviceTokens finds the keys by the issuer's URL.
func NewDeviceTokens(ctx context.Context, issuer, audience, tokenType, channel string) (*DeviceTokens, error) {
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return nil, err
	}
	// Version 2 accepts RS256 alone unless told otherwise.
	verifier := provider.Verifier(&oidc.Config{ClientID: audience, SupportedSigningAlgs: []string{oidc.ES256}})
	return &DeviceTokens{verifier, tokenType, channel}, nil
}

// Check returns the token. Its Subject is the device id.
func (tokens *DeviceTokens) Check(ctx context.Context, token string) (*oidc.IDToken, error) {
	verified, err := tokens.verifier.Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	// go-oidc checks neither the type nor the channel.
	var header struct {
		Type string `json:"typ"`
	}
	bytes, err := base64.RawURLEncoding.DecodeString(strings.SplitN(token, ".", 2)[0])
	if err != nil || json.Unmarshal(bytes, &header) != nil || header.Type != tokens.tokenType {
		return nil, errors.New("a token of another type")
	}
	var claims struct {
		Channel string `json:"channel"`
	}
	if err := verified.Claims(&claims); err != nil || claims.Channel != tokens.channel {
		return nil, errors.New("a token of another channel")
	}
	return verified, nil
}

// expired answers as if the max-age of every document were over: this program's clock cannot be moved.
type expired struct{}

func (expired) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		response.Header.Set("Cache-Control", "max-age=0")
	}
	return response, err
}

func verdict(token *oidc.IDToken, err error) map[string]string {
	if err != nil {
		return map[string]string{"refused": err.Error()}
	}
	return map[string]string{"device": token.Subject}
}

func main() {
	ctx := context.Background()
	if len(os.Args) > 5 && os.Args[5] == "expired" {
		ctx = oidc.ClientContext(ctx, &http.Client{Transport: expired{}})
	}
	tokens, err := NewDeviceTokens(ctx, os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		panic(err)
	}
	provider, err := oidc.NewProvider(ctx, os.Args[1])
	if err != nil {
		panic(err)
	}
	untouched := provider.Verifier(&oidc.Config{ClientID: os.Args[2]})
	lines, output := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		token := lines.Text()
		_ = output.Encode(map[string]map[string]string{
			"untouched": verdict(untouched.Verify(ctx, token)),
			"library":   verdict(tokens.verifier.Verify(ctx, token)),
			"page":      verdict(tokens.Check(ctx, token)),
		})
	}
}
