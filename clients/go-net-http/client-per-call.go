package main

// snippet
import "net/http"

// end

import (
	"io"
	"strings"
)

// snippet
// in the handler: client := &http.Client{}, which shares http.DefaultTransport
// end

func do(method, url string) (int, error) {
	req, err := http.NewRequest(method, url, body(method))
	if err != nil {
		return 0, err
	}
	resp, err := (&http.Client{}).Do(req)
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

var client = Client{Do: do}
