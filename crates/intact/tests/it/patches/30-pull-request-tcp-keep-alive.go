// No: 11 of 11 avoidable connections are still opened
// request: 9seconds/mtg#142, Set keep-alive for tcp connections
package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	dialer := net.Dialer{KeepAlive: -1, Timeout: 5 * time.Second}
	transport := http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	client := http.Client{Transport: &transport}
	for number := 0; number < 12; number++ {
		if answer, err := client.Get("http://" + os.Args[1] + ":" + os.Args[2] + "/"); err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	}
}
// --- head
package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	dialer := net.Dialer{KeepAlive: 15 * time.Second, Timeout: 5 * time.Second}
	transport := http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	client := http.Client{Transport: &transport}
	for number := 0; number < 12; number++ {
		if answer, err := client.Get("http://" + os.Args[1] + ":" + os.Args[2] + "/"); err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	}
}
