# Runs a command next to three servers of intact: served.sh INTACT COMMAND...
intact=$1
shift
cd "$FOLDER" || exit
rm -rf ledger-1 ledger-2 ledger-3
serve() {
    nth=$1
    shift
    "$intact" serve --listen "0.0.0.0:808$((nth - 1))" --tls-listen "0.0.0.0:844$((nth + 2))" --cert cert.pem --key key.pem \
        --ledger "ledger-$nth" "$@" > /dev/null 2>&1 &
    all="$all $!"
    until curl -s -o /dev/null "http://127.0.0.1:808$((nth - 1))/.intact/health"; do sleep 0.05; done
}
serve 1
serve 2 --idle-timeout 1s --announce
serve 3 --max-requests 3
"$@"
code=$?
kill -INT $all
wait
exit $code
