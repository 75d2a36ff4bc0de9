package main

// snippet
import (
	"net/http"
	"time"

	"github.com/go-resty/resty/v2"
)

// end

var idle_ms = idleMs()

// snippet
var httpClient = newClient()

func newClient() *resty.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.IdleConnTimeout = time.Duration(idle_ms) * time.Millisecond
	return resty.New().SetTransport(transport)
}

// end

func do(method, url string) (int, error) {
	request := httpClient.R()
	if method == "POST" {
		request.SetBody("ping")
	}
	response, err := request.Execute(method, url)
	if err != nil {
		return 0, err
	}
	return response.StatusCode(), nil
}

var client = Client{Do: do, Modules: []string{"github.com/go-resty/resty/v2"}}
