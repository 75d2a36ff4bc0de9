#!/bin/sh
# One overload that recovers and one that does not: the same Node service with outgoing calls, without retries and with three.
#   sh docs/internals/overload/run.sh INTACT
here=$(dirname "$0")
for retries in 0 3; do
  node "$here/upstream.js" 18200 & upstream=$!
  node "$here/service.js" 18201 18200 $retries & service=$!
  sleep 1
  echo "retries: $retries"
  "$1" bench http://127.0.0.1:18201/ --keepalive on -c 1000 --timeout 2s --server-pid $service \
    --rate 125/s --holds 'p90 < 400ms' --overload 2x --for 10s --recover-within 30s
  kill $service $upstream
  wait $service $upstream 2>/dev/null
done
