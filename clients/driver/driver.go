// Runs one client program for the harness. The protocol is in clients/README.md.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// A Client is what a program provides.
type Client struct {
	// Do makes a request, reads the body to its end and gives the status.
	Do func(method, url string) (int, error)
	// Unread makes a GET and leaves the body unread; nil: cannot.
	Unread func(url string) (int, error)
	// Modules are reported with their versions.
	Modules []string
	// GetOnly: it cannot POST.
	GetOnly bool
	// OwnService: it makes no sense of a 404 without its service's own body.
	OwnService bool
	// HTTP2Only: it speaks nothing else.
	HTTP2Only bool
}

func idleMs() int {
	if ms, err := strconv.Atoi(os.Getenv("INTACT_IDLE_MS")); err == nil {
		return ms
	}
	return 4000
}

func lifeMs() int {
	if ms, err := strconv.Atoi(os.Getenv("INTACT_LIFE_MS")); err == nil {
		return ms
	}
	return 4000
}

func timeoutMs() int {
	if ms, err := strconv.Atoi(os.Getenv("INTACT_TIMEOUT_MS")); err == nil {
		return ms
	}
	return 10000
}

func main() {
	versions := map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go")}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			for _, module := range client.Modules {
				if dep.Path == module {
					versions[module] = strings.TrimPrefix(dep.Version, "v")
				}
			}
		}
	}
	can := []string{"pause", "concurrent"}
	if !client.GetOnly {
		can = append(can, "post")
	}
	if !client.OwnService {
		can = append(can, "status")
	}
	if client.HTTP2Only {
		can = append(can, "http2-only")
	}
	if client.Unread != nil {
		can = append(can, "unread")
	}
	say(map[string]any{"versions": versions, "can": can})

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		count, _ := strconv.Atoi(words[0])
		method, read, url := words[2], words[3] == "read", words[4]
		outcomes := make([]any, count)
		one := func(at int) {
			var status int
			var err error
			if read {
				status, err = client.Do(method, url)
			} else {
				status, err = client.Unread(url)
			}
			if err != nil {
				outcomes[at] = err.Error()
			} else {
				outcomes[at] = status
			}
		}
		var all sync.WaitGroup
		for at := range count {
			if words[1] == "at-once" {
				all.Go(func() { one(at) })
			} else {
				one(at)
			}
		}
		all.Wait()
		say(outcomes)
	}
}

func say(what any) {
	line, _ := json.Marshal(what)
	fmt.Println(string(line))
}
