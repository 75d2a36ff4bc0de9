package main

// snippet
import "github.com/go-resty/resty/v2"

// end

// snippet
var httpClient = resty.New() // one for the whole program

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
