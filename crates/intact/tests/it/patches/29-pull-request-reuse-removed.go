// No: avoidable connections 0 → 11
// request: believethehype/nostdress#17, Fix connection reuse, by removing that code
package main

import (
	"io"
	"net/http"
	"os"
)

var shared = http.Client{}

func client() *http.Client { return &shared }

func main() {
	for number := 0; number < 12; number++ {
		if answer, err := client().Get("http://" + os.Args[1] + ":" + os.Args[2] + "/"); err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	}
}
// --- head
package main

import (
	"io"
	"net/http"
	"os"
)

func client() *http.Client { return &http.Client{Transport: &http.Transport{}} }

func main() {
	for number := 0; number < 12; number++ {
		if answer, err := client().Get("http://" + os.Args[1] + ":" + os.Args[2] + "/"); err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
	}
}
