package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func main() {
	mode := flag.String("mode", "server", "")
	addr := flag.String("addr", "127.0.0.1:9443", "")
	cert := flag.String("cert", "cert.pem", "")
	key := flag.String("key", "key.pem", "")
	ca := flag.String("ca", "ca.pem", "")
	n := flag.Int("n", 5, "")
	early := flag.Bool("early", false, "")
	flag.Parse()
	if *mode == "server" {
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/bytes/") {
				c, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/bytes/"))
				w.Write(make([]byte, c))
				return
			}
			if r.URL.Path == "/echo" {
				io.Copy(w, r.Body)
				return
			}
			w.Write([]byte(strings.Repeat("x", 100)))
		})
		c, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			panic(err)
		}
		s := &http3.Server{Addr: *addr, Handler: mux, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{c}}), QUICConfig: &quic.Config{Allow0RTT: true}}
		panic(s.ListenAndServe())
	}
	pool := x509.NewCertPool()
	pem, _ := os.ReadFile(*ca)
	pool.AppendCertsFromPEM(pem)
	cache := tls.NewLRUClientSessionCache(10)
	for i := 0; i < *n; i++ {
		tr := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ClientSessionCache: cache}, QUICConfig: &quic.Config{}}
		method := http.MethodGet
		if *early {
			method = http3.MethodGet0RTT
		}
		for j := 0; j < 3; j++ {
			req, _ := http.NewRequestWithContext(context.Background(), method, "https://"+*addr+"/bytes/100", nil)
			resp, err := tr.RoundTrip(req)
			if err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			b, err := io.ReadAll(resp.Body)
			fmt.Println(resp.Proto, resp.StatusCode, len(b), err, "resumed", resp.TLS.DidResume)
		}
		tr.Close()
	}
}
