# through.sh PROXY CONFIG: watches a proxy, sends it 20 requests on one connection, and ends it.
case $1 in
  nginx) start="nginx -p $PWD -e stderr -g 'daemon off; pid nginx.pid;' -c $2" ;;
  haproxy) start="haproxy -db -f $2" ;;
  apache2) start="apache2 -DFOREGROUND -d $PWD -f $2" ;;
  caddy) start="caddy run --config $2 --adapter caddyfile" ;;
esac
export XDG_DATA_HOME=$PWD XDG_CONFIG_HOME=$PWD
intact watch --rtt 30ms -- bash -c "exec $start 2> proxy.log" &
until (exec 3<>/dev/tcp/127.0.0.1/8081) 2> /dev/null; do sleep 0.05; done
curl -s "http://127.0.0.1:8081/[1-20]" > /dev/null
kill $!
wait
