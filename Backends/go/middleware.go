package synheartauth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

type key struct{}

// VerificationOf is the result of the middleware for a request, nil if the middleware did not judge it.
func VerificationOf(ctx context.Context) *Verification {
	found, _ := ctx.Value(key{}).(*Verification)
	return found
}

// IdentityOf is the device that signed a request, nil for a request that passes only because its app is in observe mode.
func IdentityOf(ctx context.Context) *Identity {
	if found := VerificationOf(ctx); found != nil {
		return found.Identity
	}
	return nil
}

// Middleware lets a request reach a handler only if it is verified, or passes in observe mode. IdentityOf(r.Context()) tells who
// signed.
func (v *Verifier) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		lines := r.Header.Clone()
		for name := range r.Header {
			if isReserved(name) {
				delete(r.Header, name)
			}
		}
		if VerificationOf(r.Context()) != nil {
			next.ServeHTTP(w, r)
			return
		}
		found, refusal := v.verify(w, r, lines)
		if found == nil && refusal == nil {
			// The client disconnected, so it does not wait for an answer.
			panic(http.ErrAbortHandler)
		}
		if refusal != nil {
			for name, values := range refusal.Header {
				w.Header()[name] = values
			}
			w.WriteHeader(refusal.Status)
			_, _ = w.Write(refusal.Body)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, found)))
	})
}

// verify reads the body, and puts it back for the handler. Both results are nil if the body is incomplete.
func (v *Verifier) verify(w http.ResponseWriter, r *http.Request, lines http.Header) (*Verification, *Refusal) {
	if r.ContentLength != 0 && (len(r.PostForm) > 0 || r.MultipartForm != nil) {
		return nil, v.impossible("the body was read before it was verified: put the middleware around the handler that reads it")
	}
	if r.ContentLength > v.bodyLimit {
		return nil, v.tooLarge("none")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, v.bodyLimit))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, v.tooLarge("none")
	}
	if err != nil {
		return nil, nil
	}
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		// The client is connected by a UNIX socket, which has no address.
		peer = ""
	}
	// Only RequestURI has the target as it was sent.
	found, refusal := v.Verify(r.Context(), Incoming{Method: r.Method, Target: r.RequestURI, Header: lines, Body: body, Peer: peer})
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	return found, refusal
}
