// Not shown; base opens no avoidable connection
// request: xanzy/go-gitlab#863, drain connections before closing to ensure they can be reused
package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	for number := 0; number < 12; number++ {
		body := strings.NewReader(`{"number": 1}`)
		answer, err := http.Post("http://"+os.Args[1]+":"+os.Args[2]+"/echo", "application/json", body)
		if err != nil {
			continue
		}
		finish := func() { answer.Body.Close() }
		var decoded map[string]int
		if json.NewDecoder(answer.Body).Decode(&decoded) != nil {
			io.Copy(io.Discard, answer.Body)
		}
		finish()
	}
}
// --- head
package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	for number := 0; number < 12; number++ {
		body := strings.NewReader(`{"number": 1}`)
		answer, err := http.Post("http://"+os.Args[1]+":"+os.Args[2]+"/echo", "application/json", body)
		if err != nil {
			continue
		}
		finish := func() { io.Copy(io.Discard, answer.Body); answer.Body.Close() }
		var decoded map[string]int
		if json.NewDecoder(answer.Body).Decode(&decoded) != nil {
			io.Copy(io.Discard, answer.Body)
		}
		finish()
	}
}
