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

var timeout_ms = timeoutMs()

// snippet
func pinging() *http.Client {
	limit := time.Duration(timeout_ms) * time.Millisecond
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// HTTP/2: a connection that leaves a PING unanswered is closed
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: limit / 2, PingTimeout: limit / 2}
	return &http.Client{Transport: transport}
}

var httpClient = pinging()

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
