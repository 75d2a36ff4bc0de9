package main

// snippet
import (
	"io"
	"net/http"
)

// end

import "strings"

// snippet
func send(req *http.Request) (int, error) {
	resp, err := http.DefaultClient.Do(req) // one client for the whole program
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body) // the body is read to its end
	return resp.StatusCode, err
}

// end

var httpClient = http.DefaultClient

func do(method, url string) (int, error) {
	req, err := http.NewRequest(method, url, body(method))
	if err != nil {
		return 0, err
	}
	return send(req)
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
