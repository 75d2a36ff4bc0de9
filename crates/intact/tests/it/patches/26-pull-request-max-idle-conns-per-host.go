// Yes; avoidable connections are gone
// request: letsencrypt/boulder#7349, Set MaxIdleConnsPerHost to MaxIdleConns
package main

import (
	"io"
	"net/http"
	"os"
	"sync"
)

func main() {
	client := http.Client{Transport: &http.Transport{MaxIdleConns: 100}}
	for round := 0; round < 4; round++ {
		var all sync.WaitGroup
		for number := 0; number < 10; number++ {
			all.Add(1)
			go func() {
				defer all.Done()
				if answer, err := client.Get("http://" + os.Args[1] + ":" + os.Args[2] + "/delay/100"); err == nil {
					io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}()
		}
		all.Wait()
	}
}
// --- head
package main

import (
	"io"
	"net/http"
	"os"
	"sync"
)

func main() {
	client := http.Client{Transport: &http.Transport{MaxIdleConns: 100, MaxIdleConnsPerHost: 100}}
	for round := 0; round < 4; round++ {
		var all sync.WaitGroup
		for number := 0; number < 10; number++ {
			all.Add(1)
			go func() {
				defer all.Done()
				if answer, err := client.Get("http://" + os.Args[1] + ":" + os.Args[2] + "/delay/100"); err == nil {
					io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}()
		}
		all.Wait()
	}
}
