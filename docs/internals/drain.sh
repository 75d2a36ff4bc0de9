#!/usr/bin/env bash
# Ends real servers under kept connections, one after the other, and prints the table of docs/internals/check.md.
#
#   cargo build -p intact && docs/internals/drain.sh target/debug/intact
#
# Needs nginx, caddy, nodejs, golang, a JDK, openssl, jq, and for Python a venv with gunicorn and uvicorn in $PYTHON_VENV. What is
# missing is reported and left out. Every server listens on loopback and ends with its check. Each has a path that takes a second.
set -euo pipefail

intact=$(realpath "${1:?name the intact binary}")
venv=${PYTHON_VENV:-}
work=$(mktemp -d)
backend=
cleanup() {
    if [ -n "$backend" ]; then kill "$backend" 2>/dev/null || true; wait "$backend" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap cleanup EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
have() { command -v "$1" >/dev/null || { echo "left out: $1 is not installed" >&2; return 1; }; }

echo "| server | signal | announced | last response: kept | new | new refused from | lost: in flight | kept | new | process ended |"
echo "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |"
# drain NAME SIGNAL URL SLOW-PATH COMMAND...
drain() {
    local name=$1 signal=$2 url=$3 slow=$4
    shift 4
    "$intact" check "$url" --insecure --drain --drain-signal "$signal" --drain-slow "$slow" --drain-time 20s --json="$work/drain.json" -- "$@" >"$work/page" 2>"$work/log" || cat "$work/log" >&2
    if ! jq -e .drain "$work/drain.json" >/dev/null; then
        echo "left out: $name: $(jq -r '.verdict[0]' "$work/drain.json")" >&2
        return
    fi
    jq -r --arg name "$name" --arg signal "SIG$signal" '
        def time: if . == null then "-" elif . < 1000 then "\(round) ms" else "\(. / 100 | round / 10) s" end;
        .drain | def group: "\(.lost) of \(.sent)";
        [ $name, $signal
        , ([.versions[] | "\(.announced) of \(.announced + .not_announced) (\(.http))"] | join(", "))
        , (.responded_until_ms | time), (.accepted_until_ms | time), (.refused_from_ms | time)
        , (.in_flight | group), (.kept | group), (.new | group)
        , (if .process.end == "ended" then (.process.ended_ms | time) + ", " + .process.status else .process.end end)
        ] | "| \(join(" | ")) |"' "$work/drain.json"
    if [ -n "${KEEP:-}" ]; then mkdir -p "$KEEP"; cp "$work/page" "$KEEP/${name//[^A-Za-z0-9.]/-}-$signal.page"; fi
}

openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
slow=$(free_port)
"$intact" serve --listen "127.0.0.1:$slow" --tls-listen 127.0.0.1:0 >/dev/null 2>&1 &
backend=$!

if have nginx; then
    port=$(free_port); mkdir -p "$work/nginx"
    cat >"$work/nginx.conf" <<END
pid $work/nginx/pid; error_log $work/nginx/error.log; daemon off;
events {}
http { access_log off; server {
  listen 127.0.0.1:$port ssl http2; ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem;
  location / { return 200 "ok"; } location /delay/ { proxy_pass http://127.0.0.1:$slow; } } }
END
    version=$(nginx -v 2>&1 | sed 's|.*/||; s| .*||')
    for signal in TERM QUIT; do
        drain "nginx $version" $signal "https://127.0.0.1:$port/" /delay/1000 nginx -c "$work/nginx.conf" -e "$work/nginx/error.log"
    done
fi
if have caddy; then
    port=$(free_port)
    printf '{\n admin off\n auto_https off\n}\nhttps://localhost:%s {\n bind 127.0.0.1\n tls %s %s\n reverse_proxy /delay/* 127.0.0.1:%s\n respond / ok\n}\n' "$port" "$work/cert.pem" "$work/key.pem" "$slow" >"$work/Caddyfile"
    drain "Caddy $(caddy version | sed 's|^v||; s| .*||')" TERM "https://localhost:$port/" /delay/1000 env HOME="$work" caddy run --adapter caddyfile --config "$work/Caddyfile"
fi
if have node; then
    port=$(free_port); version=$(node --version | sed 's|^v||')
    respond="(request, response) => setTimeout(() => response.end('ok'), request.url === '/slow' ? 1000 : 0)"
    drain "Node $version" TERM "http://127.0.0.1:$port/" /slow node -e "require('http').createServer($respond).listen($port, '127.0.0.1')"
    drain "Node $version, \`server.close()\`" TERM "http://127.0.0.1:$port/" /slow \
        node -e "const server = require('http').createServer($respond).listen($port, '127.0.0.1'); process.on('SIGTERM', () => server.close())"
    drain "Node $version, \`Connection: close\` from the signal on, \`server.close()\` after 5 s" TERM "http://127.0.0.1:$port/" /slow \
        node -e "let ends = false; const respond = $respond; const server = require('http').createServer((request, response) => { const end = response.end; response.end = (...body) => { if (ends) response.setHeader('Connection', 'close'); end.apply(response, body) }; respond(request, response) }).listen($port, '127.0.0.1'); process.on('SIGTERM', () => { ends = true; setTimeout(() => server.close(), 5000) })"
    drain "Node $version, HTTP/2, \`server.close()\`" TERM "https://127.0.0.1:$port/" /slow \
        node -e "const fs = require('fs'); const server = require('http2').createSecureServer({allowHTTP1: true, key: fs.readFileSync('$work/key.pem'), cert: fs.readFileSync('$work/cert.pem')}, $respond).listen($port, '127.0.0.1'); process.on('SIGTERM', () => server.close())"
fi
if have go; then
    cat >"$work/main.go" <<'END'
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	http.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { time.Sleep(time.Second); fmt.Fprint(w, "ok") })
	server := &http.Server{Addr: os.Args[1]}
	if len(os.Args) > 4 {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		go server.ListenAndServeTLS(os.Args[2], os.Args[3])
		<-ended
		server.Shutdown(context.Background())
		return
	}
	server.ListenAndServeTLS(os.Args[2], os.Args[3])
}
END
    (cd "$work" && GO111MODULE=off GOFLAGS= GOCACHE="$work/gocache" go build -o "$work/goserver" main.go)
    port=$(free_port); version=$(go version | sed 's|.*go\([0-9.]*\) .*|\1|')
    drain "Go $version" TERM "https://127.0.0.1:$port/" /slow "$work/goserver" "127.0.0.1:$port" "$work/cert.pem" "$work/key.pem"
    drain "Go $version, \`Server.Shutdown\`" TERM "https://127.0.0.1:$port/" /slow "$work/goserver" "127.0.0.1:$port" "$work/cert.pem" "$work/key.pem" shutdown
fi
if [ -n "$venv" ]; then
    cat >"$work/app.py" <<'END'
import asyncio
import time

def wsgi(environ, start_response):
    if environ["PATH_INFO"] == "/slow":
        time.sleep(1)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]

async def asgi(scope, receive, send):
    if scope["type"] == "http":
        if scope["path"] == "/slow":
            await asyncio.sleep(1)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
END
    port=$(free_port)
    drain "gunicorn $("$venv/bin/gunicorn" --version | sed 's|.*version ||; s|)||'), 8 threads" TERM "http://127.0.0.1:$port/" /slow "$venv/bin/gunicorn" --chdir "$work" --threads 8 -b "127.0.0.1:$port" app:wsgi
    drain "uvicorn $("$venv/bin/uvicorn" --version | sed 's|.*uvicorn \([0-9.]*\).*|\1|')" TERM "http://127.0.0.1:$port/" /slow "$venv/bin/uvicorn" --app-dir "$work" --port "$port" app:asgi
else
    echo "left out: gunicorn and uvicorn; name a venv that has them in PYTHON_VENV" >&2
fi
if have java; then
    cat >"$work/Served.java" <<'END'
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Served {
    public static void main(String[] words) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 0);
        server.createContext("/", exchange -> {
            if (exchange.getRequestURI().getPath().equals("/slow")) {
                try { Thread.sleep(1000); } catch (InterruptedException error) { return; }
            }
            exchange.sendResponseHeaders(200, 2);
            exchange.getResponseBody().write("ok".getBytes());
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.start();
        if (words.length > 1) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(5)));
        }
    }
}
END
    port=$(free_port); version=$(java -version 2>&1 | sed -n '1s|.*"\(.*\)".*|\1|p')
    drain "Java $version, \`HttpServer\`" TERM "http://127.0.0.1:$port/" /slow java "$work/Served.java" "$port"
    drain "Java $version, \`HttpServer.stop(5)\`" TERM "http://127.0.0.1:$port/" /slow java "$work/Served.java" "$port" stop
fi
port=$(free_port)
drain "\`intact serve\`" TERM "http://127.0.0.1:$port/" /delay/1000 "$intact" serve --listen "127.0.0.1:$port" --tls-listen 127.0.0.1:0
