#!/usr/bin/env bash
# Checks real servers with their defaults, side by side, and prints the table of docs/internals/check.md.
#
#   cargo build -p intact && docs/internals/servers.sh target/debug/intact
#
# Needs what the packages bring: nginx, apache2, lighttpd, haproxy, caddy, nodejs, tomcat10, golang, and for Python a venv with
# gunicorn and uvicorn in $PYTHON_VENV. What is missing is told and left out. Every server listens on loopback at a free port and
# ends with the script. It takes as long as the longest idle wait: LIMIT, 100 s.
set -euo pipefail

intact=$(realpath "${1:?name the intact binary}")
limit=${LIMIT:-100s}
venv=${PYTHON_VENV:-}
work=$(mktemp -d)
children=()
cleanup() {
    for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
have() { command -v "$1" >/dev/null || { echo "left out: $1 is not installed" >&2; return 1; }; }

# Starts a server (the words after the fifth) and checks it once it answers.
# probe NAME VERSION DOCUMENTED-IDLE DOCUMENTED-REQUESTS PORT COMMAND...
probe() {
    local name=$1 version=$2 idle=$3 requests=$4 port=$5
    shift 5
    "$@" >"$work/$name.log" 2>&1 &
    children+=($!)
    for _ in $(seq 300); do
        if curl -s -o /dev/null "http://127.0.0.1:$port/"; then break; fi
        sleep 0.1
    done
    local order=${#children[@]}
    (
        "$intact" check "http://127.0.0.1:$port/" --thorough --idle-limit "$limit" --json="$work/$name.json" >"$work/$name.page" 2>&1 || true
        jq -r --arg name "$name" --arg version "$version" --arg idle "$idle" --arg requests "$requests" '
            def tenths: . * 10 | round / 10;
            def limit(measured; least): if measured != null then measured | tostring elif least != null then "\(least)+" else "-" end;
            .idle_timeout as $i | .max_requests as $m
            | [ "\($name) \($version)"
              , if $i.announced_s != null then "\($i.announced_s) s" else "-" end
              , (limit($i.measured_s | if . then tenths else . end; $i.at_least_s | if . then floor else . end) + " s")
              , $idle
              , (limit($i.before_first_request_s | if . then tenths else . end; $i.before_first_request_at_least_s | if . then floor else . end) + " s")
              , ($m.announced // "-" | tostring)
              , limit($m.measured; $m.at_least)
              , $requests
              , ([.race.attempts[]? | select(.sent) | if .answered then "answered" else "lost" end] | join(", ") | if . == "" then "-" else . end)
              ] | "| \(join(" | ")) |"' "$work/$name.json" >"$work/$order.row"
    ) &
    children+=($!)
}

if have nginx; then
    port=$(free_port); mkdir -p "$work/nginx"
    cat >"$work/nginx.conf" <<END
pid $work/nginx/pid; error_log $work/nginx/error.log; daemon off;
events {}
http { access_log off; server { listen 127.0.0.1:$port; location / { return 200 "ok"; } } }
END
    probe nginx "$(nginx -v 2>&1 | sed 's|.*/||; s| .*||')" "75 s, \`keepalive_timeout\`" "1,000, \`keepalive_requests\`" "$port" nginx -c "$work/nginx.conf" -e "$work/nginx/error.log"
fi
if have apache2; then
    port=$(free_port); cp -r /etc/apache2 "$work/apache2"; mkdir -p "$work/apache2-run"
    echo "Listen 127.0.0.1:$port" >"$work/apache2/ports.conf"
    probe Apache "$(apache2 -v | sed -n 's|.*Apache/\([0-9.]*\).*|\1|p')" "5 s, \`KeepAliveTimeout\`" "100, \`MaxKeepAliveRequests\`" "$port" \
        env APACHE_RUN_DIR="$work/apache2-run" APACHE_PID_FILE="$work/apache2-run/pid" APACHE_RUN_USER=www-data APACHE_RUN_GROUP=www-data \
        APACHE_LOG_DIR="$work/apache2-run" APACHE_LOCK_DIR="$work/apache2-run" apache2 -d "$work/apache2" -f apache2.conf -D FOREGROUND -C "ServerName localhost"
fi
if have lighttpd; then
    port=$(free_port); mkdir -p "$work/lighttpd"; echo ok >"$work/lighttpd/index.html"
    sed -e "s|^server.port.*|server.port = $port\nserver.bind = \"127.0.0.1\"|" -e "s|\"/var/www/html\"|\"$work/lighttpd\"|" \
        -e "s|\"/var/log/lighttpd/error.log\"|\"$work/lighttpd.errors\"|" -e "s|\"/run/lighttpd.pid\"|\"$work/lighttpd.pid\"|" \
        -e '/^server.username/d; /^server.groupname/d; /^include_shell.*use-ipv6/d' /etc/lighttpd/lighttpd.conf >"$work/lighttpd.conf"
    probe lighttpd "$(lighttpd -v | sed -n 's|lighttpd/\([0-9.]*\).*|\1|p')" "5 s, \`server.max-keep-alive-idle\`" "1,000, \`server.max-keep-alive-requests\`" "$port" lighttpd -D -f "$work/lighttpd.conf"
fi
if have haproxy; then
    port=$(free_port)
    {
        sed -n '/^defaults/,$p' /etc/haproxy/haproxy.cfg
        printf 'frontend check\n bind 127.0.0.1:%s\n http-request return status 200 content-type text/plain string ok\n' "$port"
    } >"$work/haproxy.cfg"
    probe HAProxy "$(haproxy -v | sed -n 's|HAProxy version \([0-9.]*\).*|\1|p')" "50 s, \`timeout client\` of the package" "none" "$port" haproxy -db -f "$work/haproxy.cfg"
fi
if have caddy; then
    port=$(free_port)
    printf '{\n admin off\n auto_https off\n}\nhttp://127.0.0.1:%s {\n respond ok\n}\n' "$port" >"$work/Caddyfile"
    probe Caddy "$(caddy version | sed 's|^v||; s| .*||')" "5 min, \`timeouts idle\`" "none" "$port" env HOME="$work" caddy run --adapter caddyfile --config "$work/Caddyfile"
fi
if have node; then
    port=$(free_port)
    probe Node "$(node --version | sed 's|^v||')" "5 s + 1 s, \`server.keepAliveTimeout\` and its buffer" "none, \`server.maxRequestsPerSocket\`" "$port" \
        node -e "require('http').createServer((request, response) => response.end('ok')).listen($port, '127.0.0.1')"
fi
if have go; then
    port=$(free_port)
    printf 'package main\nimport ("fmt"; "net/http")\nfunc main() {\n http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })\n http.ListenAndServe("127.0.0.1:%s", nil)\n}\n' "$port" >"$work/main.go"
    (cd "$work" && GO111MODULE=off GOFLAGS= GOCACHE="$work/gocache" go build -o "$work/goserver" main.go)
    probe Go "$(go version | sed 's|.*go\([0-9.]*\) .*|\1|')" "none, \`Server.IdleTimeout\`" "none" "$port" "$work/goserver"
fi
if [ -n "$venv" ]; then
    cat >"$work/app.py" <<'END'
def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]

async def asgi(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
END
    version=$("$venv/bin/gunicorn" --version | sed 's|.*version ||; s|)||')
    port=$(free_port)
    probe gunicorn "$version, sync" "not kept by the sync worker" "1" "$port" "$venv/bin/gunicorn" --chdir "$work" -b "127.0.0.1:$port" app:wsgi
    port=$(free_port)
    probe gunicorn-gthread "$version, 2 threads" "2 s, \`--keep-alive\`" "none" "$port" "$venv/bin/gunicorn" --chdir "$work" --threads 2 -b "127.0.0.1:$port" app:wsgi
    port=$(free_port)
    probe uvicorn "$("$venv/bin/uvicorn" --version | sed 's|.*uvicorn \([0-9.]*\).*|\1|')" "5 s, \`--timeout-keep-alive\`" "none" "$port" "$venv/bin/uvicorn" --app-dir "$work" --port "$port" app:asgi
else
    echo "left out: gunicorn and uvicorn; name a venv that has them in PYTHON_VENV" >&2
fi
if [ -d /usr/share/tomcat10 ] && have java; then
    port=$(free_port); base="$work/tomcat"; mkdir -p "$base"/{conf,logs,temp,webapps/ROOT,work}
    cp -r /usr/share/tomcat10/etc/* "$base/conf/"; echo ok >"$base/webapps/ROOT/index.html"
    sed -i "s|port=\"8080\"|port=\"$port\" address=\"127.0.0.1\"|; s|<Server port=\"8005\"|<Server port=\"-1\"|" "$base/conf/server.xml"
    version=$(java -cp /usr/share/tomcat10/lib/catalina.jar org.apache.catalina.util.ServerInfo | sed -n 's|Server number: *||p')
    probe Tomcat "$version" "20 s, \`connectionTimeout\` of the package" "100, \`maxKeepAliveRequests\`" "$port" \
        env CATALINA_BASE="$base" CATALINA_HOME=/usr/share/tomcat10 /usr/share/tomcat10/bin/catalina.sh run
else
    echo "left out: tomcat10 is not installed" >&2
fi

echo "waiting for the checks, $limit and a little" >&2
for ((nth = 1; nth < ${#children[@]}; nth += 2)); do wait "${children[$nth]}" || true; done
echo "| server | announced idle | measured idle | documented | before the first request | announced max | measured max | documented | requests around the limit |"
echo "| --- | --: | --: | --- | --: | --: | --: | --- | --- |"
for row in $(ls "$work"/*.row | sort -V); do cat "$row"; done
if [ -n "${KEEP:-}" ]; then mkdir -p "$KEEP"; cp "$work"/*.json "$work"/*.page "$work"/*.log "$KEEP"/; fi
