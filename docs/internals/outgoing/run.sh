#!/bin/sh
# What reuse of outgoing connections does to inbound throughput over 30 ms: a Node service and `intact serve --upstream`, both with three
# calls for each request; and the latter with an upstream whose first response on each connection takes 20 ms more (a cache for each
# connection). As root.
#   sh docs/internals/outgoing/run.sh INTACT
intact=$1
service=$(dirname "$0")/service.js
own="$intact serve --listen 127.0.0.1:18091 --tls-listen 127.0.0.1:18092 --upstream http://server.test/ --calls 3 --upstream-keepalive"
cold="$intact serve --listen 0.0.0.0:80 --tls-listen 0.0.0.0:443 --first-request-cost 20ms"
bench="$intact bench http://127.0.0.1:18091/ -c 16 -z 20s --rounds 10"
$intact link rtt=30ms -- $bench --service "node $service http://server.test/ percall" --service "node $service http://server.test/ kept"
$intact link rtt=30ms -- $bench --service "$own off" --service "$own on"
$intact link rtt=30ms --server "$cold" -- $bench --service "$own off" --service "$own on"
