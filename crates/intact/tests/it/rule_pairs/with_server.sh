# Runs a command next to a server of servers.py on port 7071: with_server.sh KIND COMMAND...
kind=$1
shift
cd "$FOLDER" || exit
mkfifo end
PORT=7071 SERVER=127.0.0.1 CLIENT=127.0.0.1 python3 servers.py "$kind" < end > ready &
exec 3> end
until grep -q ready ready; do sleep 0.05; done
"$@" 3>&-
code=$?
exec 3>&-
wait
rm end ready
exit $code
