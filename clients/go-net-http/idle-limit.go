package main

// snippet
import (
	"net/http"
	"time"
)

// end

import (
	"io"
	"strings"
)

var idle_ms = idleMs()

// snippet
var httpClient = newClient()

func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.IdleConnTimeout = time.Duration(idle_ms) * time.Millisecond
	return &http.Client{Transport: transport}
}

// end

func do(method, url string) (int, error) {
	req, err := http.NewRequest(method, url, body(method))
	if err != nil {
		return 0, err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	return resp.StatusCode, nil
}

func body(method string) io.Reader {
	if method == "POST" {
		return strings.NewReader("ping")
	}
	return nil
}

func unread(url string) (int, error) {
	resp, err := httpClient.Get(url)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

var client = Client{Do: do, Unread: unread}
