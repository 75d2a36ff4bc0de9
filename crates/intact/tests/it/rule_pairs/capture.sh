# Records the packets of a command: capture.sh FOLDER FILE COMMAND...
folder=$1 file=$2
shift 2
: > "$folder/dumpcap.txt"
dumpcap -q -i lo -w "$file" 2> "$folder/dumpcap.txt" &
dumpcap=$!
until grep -q File: "$folder/dumpcap.txt"; do
    kill -0 $dumpcap || exit 3
    sleep 0.05
done
export HOLDER="$folder/holder" SSLKEYLOGFILE="$folder/keys.txt"
"$@"
code=$?
sleep 0.5
kill -INT $dumpcap
wait $dumpcap
[ -e "$HOLDER" ] && kill "$(cat "$HOLDER")"
exit $code
