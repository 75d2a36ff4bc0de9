// Yes: 11 of 11 avoidable connections are gone
// request: 0xERR0R/blocky#1924, ensure HTTP response bodies are drained before closing
package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	for number := 0; number < 12; number++ {
		answer, err := http.Get("http://" + os.Args[1] + ":" + os.Args[2] + "/bytes/1000")
		if err != nil {
			continue
		}
		if answer.StatusCode != http.StatusOK {
			io.Copy(io.Discard, answer.Body)
		}
		answer.Body.Close()
	}
}
// --- head
package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	for number := 0; number < 12; number++ {
		answer, err := http.Get("http://" + os.Args[1] + ":" + os.Args[2] + "/bytes/1000")
		if err != nil {
			continue
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}
