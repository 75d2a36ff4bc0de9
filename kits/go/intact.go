// Package intact has tests that fail when the code under test wastes HTTP connections. They run under
// `intact watch --windows -- go test ./...`, which records their connections and judges each window.
package intact

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

// Version is that of the intact that this kit is released with.
const Version = "0.1.0"

// Expect judges what the process, and processes that it starts, do within the block. Requirements such as "avoidable == 0" must
// hold; "fail-on warning" or "fail-on error" is the least severity of a finding that fails the test. A block that ends the test is
// not judged. Tests with windows must not run in parallel.
func Expect(t testing.TB, block func(), requirements ...string) {
	t.Helper()
	window, err := open(t.Name(), requirements)
	if err != nil {
		t.Fatal(err)
	}
	defer window.connection.Close()
	block()
	if err := window.request("end\n", "passed"); err != nil {
		t.Fatal(err)
	}
}

// window is a connection to intact.
type window struct {
	name       string
	connection net.Conn
	replies    *bufio.Reader
}

func open(name string, requirements []string) (*window, error) {
	path := os.Getenv("INTACT_CONTROL")
	if path == "" {
		return nil, errors.New("INTACT_CONTROL is not set: run the tests as `intact watch --windows -- go test ./...`")
	}
	connection, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("intact does not listen: %w", err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name %s\n", line(name))
	for _, requirement := range requirements {
		if strings.HasPrefix(requirement, "fail-on ") {
			fmt.Fprintf(&text, "%s\n", line(requirement))
		} else {
			fmt.Fprintf(&text, "require %s\n", line(requirement))
		}
	}
	text.WriteByte('\n')
	one := &window{name, connection, bufio.NewReader(connection)}
	if err := one.request(text.String(), "open"); err != nil {
		connection.Close()
		return nil, err
	}
	return one, nil
}

// request sends lines and reads a reply: a word on a line; except for "open", a text follows until the end.
func (w *window) request(text, wanted string) error {
	if _, err := io.WriteString(w.connection, text); err != nil {
		return fmt.Errorf("intact: %w", err)
	}
	word, _ := w.replies.ReadString('\n')
	word = strings.TrimSuffix(word, "\n")
	if word == wanted {
		return nil
	}
	rest, _ := io.ReadAll(w.replies)
	switch {
	case word == "failed":
		return fmt.Errorf("intact: %s does not pass\n%s", w.name, rest)
	case len(rest) == 0:
		return errors.New("intact: the connection to intact ended")
	default:
		return fmt.Errorf("intact: %s", strings.TrimSpace(string(rest)))
	}
}

func line(text string) string {
	return strings.Join(strings.Fields(text), " ")
}
