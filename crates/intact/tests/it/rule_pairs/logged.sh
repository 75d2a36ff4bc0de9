# Runs a command next to nginx, which logs in the format that audit recommends: logged.sh COMMAND...
cd "$FOLDER" || exit
cat > nginx.conf << END
user root; daemon off; pid $PWD/nginx.pid; error_log $PWD/error.log; worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
  client_body_temp_path $PWD/1; proxy_temp_path $PWD/2; fastcgi_temp_path $PWD/3; uwsgi_temp_path $PWD/4; scgi_temp_path $PWD/5;
  log_format intact '\$remote_addr - - [\$time_local] "\$request" \$status \$body_bytes_sent "-" "\$http_user_agent" '
    'msec=\$msec rt=\$request_time conn=\$connection reqs=\$connection_requests scheme=\$scheme host=\$host '
    'tls=\$ssl_protocol resumed=\$ssl_session_reused';
  access_log $PWD/access.log intact;
  ssl_certificate $PWD/cert.pem; ssl_certificate_key $PWD/key.pem; ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:a:1m;
  server {
    listen 8080; listen 8443 ssl;
    location / { proxy_pass http://127.0.0.1:7071; }
    location = /now { return 200 'hello'; }
  }
}
END
rm -f access.log
nginx -c "$PWD/nginx.conf" &
nginx=$!
until [ -s nginx.pid ]; do
    kill -0 $nginx || exit 3
    sleep 0.05
done
"$@"
code=$?
kill $nginx
wait $nginx
exit $code
