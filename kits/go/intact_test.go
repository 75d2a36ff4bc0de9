package intact

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// The kit on net/http and `intact serve`; run by `cargo xtask kits` as `intact watch --windows -- go test`.

func get(t *testing.T, client *http.Client) {
	t.Helper()
	response, err := client.Get(os.Getenv("INTACT_TEST_SERVER"))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
}

// recorder takes the failure of a test.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Fatal(arguments ...any) {
	r.failure = fmt.Sprint(arguments...)
	panic(r)
}

// failure runs a block in a window that must fail, and returns the text.
func failure(t *testing.T, block func(), requirements ...string) string {
	t.Helper()
	inner := &recorder{TB: t}
	func() {
		defer func() { recover() }()
		Expect(inner, block, requirements...)
	}()
	if inner.failure == "" {
		t.Fatalf("%v passed", requirements)
	}
	return inner.failure
}

func TestRequestsOfOneClientPass(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	Expect(t, func() {
		for range [3]int{} {
			get(t, client)
		}
	}, "avoidable == 0", "requests == 3", "fail-on warning")
}

func TestATransportForEachRequestFailsWithTheFinding(t *testing.T) {
	text := failure(t, func() {
		for range [4]int{} {
			client := &http.Client{Transport: &http.Transport{}}
			get(t, client)
			client.CloseIdleConnections()
		}
	}, "avoidable == 0")
	for _, part := range []string{"TestATransportForEachRequest", "avoidable is 3", " at intact_test.go:", "->"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
}

func TestAConnectionFromBeforeIsNoneOfTheWindow(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get(t, client)
	Expect(t, func() { get(t, client) }, "connections == 0", "reuse == 100%")
}

func TestAWindowWithoutTrafficDoesNotPass(t *testing.T) {
	text := failure(t, func() {}, "connections == 0")
	if !strings.Contains(text, "was observed in the window") {
		t.Error(text)
	}
}

func TestASecondWindowOfTheProcessIsRefused(t *testing.T) {
	outer, err := open("outer", []string{"connections == 0"})
	if err != nil {
		t.Fatal(err)
	}
	defer outer.connection.Close()
	if _, err := open("inner", []string{"connections == 0"}); err == nil || !strings.Contains(err.Error(), "is open in process") {
		t.Error(err)
	}
}

func TestWithoutIntactTheRemedyIsNamed(t *testing.T) {
	t.Setenv("INTACT_CONTROL", "")
	text := failure(t, func() {}, "connections == 0")
	if !strings.Contains(text, "intact watch --windows") {
		t.Error(text)
	}
}
