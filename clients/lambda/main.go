// A minimal provided.al2-style function: the Runtime API by net/http.
//
// METHOD is that of its one call to INTACT_URL. HEARTBEAT keeps the idle connection in use: "tcp" has the kernel probe it each
// second, "ping" has HTTP/2 send PING.
package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func client() *http.Client {
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: false}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	switch os.Getenv("HEARTBEAT") {
	case "tcp":
		dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}
	case "ping":
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP2(true)
		transport.Protocols.SetUnencryptedHTTP2(true)
		transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: time.Second, PingTimeout: time.Second}
	default:
		return http.DefaultClient
	}
	return &http.Client{Transport: transport}
}

func main() {
	root := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	api := &http.Client{Transport: &http.Transport{}}
	method := os.Getenv("METHOD")
	if method == "" {
		method = "GET"
	}
	upstream := client()
	for {
		next, err := api.Get(root + "next")
		if err != nil {
			return
		}
		io.Copy(io.Discard, next.Body)
		next.Body.Close()
		id := next.Header.Get("Lambda-Runtime-Aws-Request-Id")
		request, _ := http.NewRequest(method, os.Getenv("INTACT_URL"), nil)
		answer, err := upstream.Do(request)
		path, body := "/response", []byte("\"ok\"")
		if err != nil {
			path, body = "/error", []byte(`{"errorType":"Error","errorMessage":`+strconv.Quote(err.Error())+`}`)
		} else {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		told, err := api.Post(root+id+path, "application/json", bytes.NewReader(body))
		if err != nil {
			return
		}
		io.Copy(io.Discard, told.Body)
		told.Body.Close()
	}
}
