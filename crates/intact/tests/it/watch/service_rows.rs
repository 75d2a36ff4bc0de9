//! Services that ran before: what they open and accept is what their peers count, and what
//! `watch -- CMD` shows of the same program.

use super::proxies::{REQUESTS, request_through, watched_service};
use super::semantics::{Stage, is_root, text};
use super::service::{follow, missing, opened_and_requests};
use crate::peers::{Peer, free_port, program, skip, wait_for};
use crate::program::{Server, exchanges};
use std::process::Command;

/// Connections that a client opens to the service.
const CONNECTIONS: usize = 3;

const NGINX: &str =
    "daemon off; worker_processes 1; pid @folder@/pid; error_log @folder@/error.log;
events {}
http {
  access_log off;
  client_body_temp_path @folder@/a; proxy_temp_path @folder@/b; fastcgi_temp_path @folder@/c;
  uwsgi_temp_path @folder@/d; scgi_temp_path @folder@/e;
  upstream u { server 127.0.0.1:@server@; keepalive 4; }
  server {
    listen 127.0.0.1:@port@;
    location / { proxy_pass https://u; proxy_http_version 1.1; proxy_set_header Connection ''; }
  }
}";

const NODE: &str = "
const http = require('http'), https = require('https');
const agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false });
http.createServer((request, response) => {
  https.get({ host: '127.0.0.1', port: @server@, path: request.url, agent }, (got) => {
    response.writeHead(200, { 'Content-Length': got.headers['content-length'] });
    got.pipe(response);
  });
}).listen(@port@, '127.0.0.1');
";

const GO: &str = r#"package main
import ("crypto/tls"; "net/http"; "net/http/httputil"; "net/url")
func main() {
	to, _ := url.Parse("https://127.0.0.1:@server@/")
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	http.ListenAndServe("127.0.0.1:@port@", proxy)
}
"#;

/// A service that passes requests on, over TLS: its file, and the words that run it.
type Gateway = (
    &'static str,
    &'static str,
    fn(&Stage) -> Option<Vec<String>>,
);

const GATEWAYS: [Gateway; 3] = [
    ("nginx.conf", NGINX, |stage| {
        let nginx = program("nginx", "rows of services")?;
        let file = stage.path("nginx.conf");
        Some(
            [text(&nginx), "-c", text(&file)]
                .map(str::to_owned)
                .to_vec(),
        )
    }),
    ("node.js", NODE, |stage| {
        let node = program("node", "rows of services")?;
        let file = stage.path("node.js");
        Some([text(&node), text(&file)].map(str::to_owned).to_vec())
    }),
    ("main.go", GO, |stage| {
        let go = program("go", "rows of services")?;
        let (binary, source) = (stage.path("gateway"), stage.path("main.go"));
        let built = Command::new(go)
            .args(["build", "-o", text(&binary), text(&source)])
            .env("GO111MODULE", "off")
            .status();
        assert!(built.unwrap().success());
        Some(vec![text(&binary).to_owned()])
    }),
];

fn drive(port: u16) {
    for _ in 0..CONNECTIONS {
        request_through(port);
    }
}

/// The connections and requests that the peer counted.
fn counted_by(server: Server) -> [u64; 2] {
    let tally = server.end();
    let cell = &tally["cells"][0];
    [
        cell["connections"]["opened"].as_u64().unwrap(),
        exchanges(cell),
    ]
}

#[test]
fn a_service_has_the_counts_of_its_peers_and_of_watch_with_the_same_program() {
    if !is_root() {
        skip("rows of services", "packets need root");
        return;
    }
    for (file, source, words) in GATEWAYS {
        let stage = Stage::set();
        let place = |server: &Server| {
            let port = free_port();
            let filled = source
                .replace("@server@", &server.tls_port())
                .replace("@port@", &port.to_string())
                .replace("@folder@", text(&stage.path("")));
            stage.write(file, &filled);
            (port, words(&stage))
        };
        for side in ["client", "server"] {
            let server = Server::start(&[]);
            let (port, Some(words)) = place(&server) else {
                continue;
            };
            let service = Command::new(&words[0]).args(&words[1..]).spawn().unwrap();
            let service = Peer(service);
            wait_for(port);
            let id = service.0.id().to_string();
            let (_, document) = follow(&["--pid", &id, "--side", side], |_| drive(port));
            drop(service);
            let own = match side {
                "client" => counted_by(server),
                _ => [CONNECTIONS, CONNECTIONS * REQUESTS].map(|count| count as u64),
            };
            assert_eq!(opened_and_requests(&document), own, "{file}: {document}");
            assert_eq!(missing(&document), [""; 0], "{file}, {side}: {document}");
        }
        let server = Server::start(&[]);
        let (port, Some(words)) = place(&server) else {
            continue;
        };
        let document = watched_service(&stage.path(""), &words, port, drive);
        let own = counted_by(server);
        assert_eq!(opened_and_requests(&document), own, "{file}: {document}");
    }
}
