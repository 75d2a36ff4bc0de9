package main

// snippet
import (
	"time"

	"github.com/valyala/fasthttp"
)

// end

var life_ms = lifeMs()

// snippet
var httpClient = &fasthttp.Client{
	MaxConnDuration: time.Duration(life_ms) * time.Millisecond,
}

// end

func do(method, url string) (int, error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(url)
	request.Header.SetMethod(method)
	if method == "POST" {
		request.SetBodyString("ping")
	}
	if err := httpClient.Do(request, response); err != nil {
		return 0, err
	}
	return response.StatusCode(), nil
}

var client = Client{Do: do, Modules: []string{"github.com/valyala/fasthttp"}}
