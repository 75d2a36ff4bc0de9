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
// for the whole exchange, its body included
var httpClient = &http.Client{Timeout: time.Duration(timeout_ms) * time.Millisecond}

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
