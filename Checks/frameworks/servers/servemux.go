// Go's ServeMux, and two handlers that compare URL.Path themselves, as it is or after path.Clean. Prints the ports.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
)

func pay(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "pay") }

func plain(clean func(string) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := clean(r.URL.Path)
		if p == "/v1/pay" || strings.HasPrefix(p, "/v1/pay/") {
			pay(w, r)
		} else {
			http.NotFound(w, r)
		}
	})
}

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/pay", pay)
	mux.HandleFunc("/v1/pay/", pay)
	handlers := []struct {
		name    string
		handler http.Handler
	}{
		{"go, ServeMux", mux},
		{"go, URL.Path", plain(func(p string) string { return p })},
		{"go, path.Clean", plain(path.Clean)},
	}
	for _, h := range handlers {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d %s\n", listener.Addr().(*net.TCPAddr).Port, h.name)
		go http.Serve(listener, h.handler)
	}
	io.Copy(io.Discard, os.Stdin)
}
