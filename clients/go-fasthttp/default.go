package main

// snippet
import "github.com/valyala/fasthttp"

// end

// snippet
var httpClient = &fasthttp.Client{} // one for the whole program

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
