// Opens connections at known lines: `// CASE=N` at its end says which case opens how many there.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

var url, address string

func fresh() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

func done(response *http.Response, err error) {
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
}

func speak(one net.Conn, err error) {
	if err != nil {
		panic(err)
	}
	fmt.Fprint(one, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	io.Copy(io.Discard, one)
	one.Close()
}

func repeat(count int, function func()) {
	for range make([]int, count) {
		function()
	}
}

func inner(client *http.Client) {
	done(client.Get(url)) // sync=3 pool=12 deferred=1 both=2
}

// small enough to be inlined
func small() (net.Conn, error) { return net.Dial("tcp", address) } // inlined=2

type service struct{ client *http.Client }

func (one *service) fetch() {
	done(one.client.Get(url)) // method=2 value=2
}

type fetcher interface{ fetch() }

func first[T fetcher](all []T) {
	all[0].fetch()
}

func generic[T any](_ T) {
	done(fresh().Get(url)) // generic=2
}

func wrapped(function func()) func() {
	return func() { function() }
}

func main() {
	url, address = "http://127.0.0.1:"+os.Args[1]+"/", "127.0.0.1:"+os.Args[1]
	var all sync.WaitGroup
	switch os.Args[2] {
	case "sync":
		repeat(3, func() { inner(fresh()) })
	case "inlined":
		repeat(2, func() { speak(small()) })
	case "method":
		first([]*service{{fresh()}})
		first([]*service{{fresh()}})
	case "value":
		fetch := (&service{fresh()}).fetch
		repeat(2, fetch)
	case "generic":
		generic(1)
		generic("x")
	case "closure":
		wrapped(func() {
			done(fresh().Get(url)) // closure=1
		})()
	case "direct":
		for range make([]int, 2) {
			all.Add(1)
			go func() {
				defer all.Done()
				speak(net.Dial("tcp", address)) // direct=2
			}()
		}
	case "pool":
		jobs := make(chan int)
		for range make([]int, 4) {
			all.Add(1)
			go func() {
				defer all.Done()
				for range jobs {
					inner(fresh())
				}
			}()
		}
		repeat(12, func() { jobs <- 1 })
		close(jobs)
	case "shared":
		client := &http.Client{}
		for range make([]int, 3) {
			all.Add(1)
			go func() {
				defer all.Done()
				_, _ = client.Get(url) // shared=3
				select {}
			}()
		}
		time.Sleep(500 * time.Millisecond)
		os.Exit(0)
	case "name":
		// two kinds of addresses: the library dials in one more goroutine
		name := "http://localhost:" + os.Args[1] + "/"
		repeat(2, func() {
			done(fresh().Get(name)) // name=2
		})
	case "both":
		done(fresh().Head(url)) // both=1
		inner(fresh())
		inner(fresh())
		done(fresh().PostForm(url, nil)) // both=1
	case "context":
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		request, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
		done(fresh().Do(request)) // context=1
		done(fresh().Do(request)) // context=1
	case "deferred":
		func() {
			defer func() {
				_ = recover()
				inner(fresh())
			}()
			var none *service
			none.fetch()
		}()
	case "dialer":
		dial := func(ctx context.Context, network, to string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, to) // dialer=2
		}
		repeat(2, func() {
			done((&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Get(url))
		})
	}
	all.Wait()
}
