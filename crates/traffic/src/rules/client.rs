//! Which client opened the connections, where it shows, and what its library calls the remedy.
//!
//! Detected by the command of the process, else by its `User-Agent`, else by the idle time after
//! which it closes by itself: libraries keep to their defaults. An idle time that several libraries
//! share names all of them. Must not guess from anything else.

use crate::Counts;
use intact_document::finding::Finding;
use intact_document::statement::Statement;

/// A client library or program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Node.js, by its process or by undici's idle time of 4 s.
    Node,
    /// Python.
    Python,
    /// A Java virtual machine, or OkHttp by its idle time of 300 s.
    Java,
    /// Go.
    Go,
    /// Rust: hyper, reqwest.
    Rust,
    /// Go or Rust's hyper, by the idle time of 90 s that both have.
    GoOrRust,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// .NET.
    DotNet,
    /// curl.
    Curl,
    /// nginx as a proxy.
    Nginx,
}

/// What is to be done, whatever the library calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Make one client and use it for every call.
    ShareClient,
    /// Read responses to their end.
    Drain,
    /// Keep more idle connections.
    WidenPool,
    /// Close idle connections before the server does, or retry.
    ShortenIdle,
    /// Keep idle connections for longer.
    LengthenIdle,
    /// Leave `Connection: close` out.
    StopClosing,
    /// Notice that a connection is dead.
    CheckAlive,
}

impl Remedy {
    /// The finding with the client's own name of the remedy, where the client is recognised.
    pub(crate) fn for_client(self, client: Option<Client>, mut finding: Finding) -> Finding {
        if let Some(advice) = client.and_then(|client| client.advice(self)) {
            finding.fix = finding.fix.then(". ", Statement::text(advice));
        }
        if let Some(command) = client.and_then(Client::fix_command) {
            let measured = format!("`{command}` has what was measured");
            finding.fix = finding.fix.and(Statement::text(measured));
        }
        finding
    }
}

/// Prefixes of commands.
const COMMANDS: [(&str, Client); 14] = [
    ("node", Client::Node),
    ("npm", Client::Node),
    ("python", Client::Python),
    ("pytest", Client::Python),
    ("gunicorn", Client::Python),
    ("uvicorn", Client::Python),
    ("celery", Client::Python),
    ("java", Client::Java),
    ("ruby", Client::Ruby),
    ("puma", Client::Ruby),
    ("php", Client::Php),
    ("dotnet", Client::DotNet),
    ("curl", Client::Curl),
    ("nginx", Client::Nginx),
];

/// Beginnings of `User-Agent`, of libraries and not of what is built on them.
const AGENTS: [(&str, Client); 26] = [
    ("node", Client::Node),
    ("undici", Client::Node),
    ("axios/", Client::Node),
    ("python", Client::Python),
    ("Python", Client::Python),
    ("aiohttp/", Client::Python),
    ("Boto3/", Client::Python),
    ("Botocore/", Client::Python),
    ("Java/", Client::Java),
    ("Java-http-client/", Client::Java),
    ("okhttp/", Client::Java),
    ("Apache-HttpClient/", Client::Java),
    ("Apache-HttpAsyncClient/", Client::Java),
    ("aws-sdk-java/", Client::Java),
    ("Jersey/", Client::Java),
    ("Go-http-client/", Client::Go),
    ("go-resty/", Client::Go),
    ("reqwest/", Client::Rust),
    ("hyper/", Client::Rust),
    ("Ruby", Client::Ruby),
    ("Faraday", Client::Ruby),
    ("http.rb/", Client::Ruby),
    ("GuzzleHttp/", Client::Php),
    ("PHP", Client::Php),
    ("RestSharp/", Client::DotNet),
    ("curl/", Client::Curl),
];

/// Idle times in seconds after which only the named client closes; it may be late by 5 % and 0.2 s.
const IDLE_TIMES: [(f64, Client); 4] = [
    (4.0, Client::Node),
    (15.0, Client::Python),
    (90.0, Client::GoOrRust),
    (300.0, Client::Java),
];

impl Client {
    /// The client of most connections to a destination, if it is recognised; `idle` is the idle
    /// time after which it closes, in nanoseconds.
    pub fn recognise(counts: &Counts, idle: Option<u64>) -> Option<Client> {
        let most = counts.commands.iter().max_by_key(|(_, count)| **count);
        let command = most.and_then(|(command, _)| {
            let name = command.rsplit('/').next().unwrap_or(command);
            COMMANDS
                .iter()
                .find(|(prefix, _)| name.starts_with(prefix))
                .map(|(_, client)| *client)
        });
        let most = counts.agents.iter().max_by_key(|(_, count)| **count);
        let agent = most.and_then(|(agent, _)| {
            let known = AGENTS.iter().find(|(start, _)| agent.starts_with(start));
            known.map(|(_, client)| *client)
        });
        command.or(agent).or_else(|| {
            let idle = idle? as f64 / 1e9;
            IDLE_TIMES
                .iter()
                .find(|(timer, _)| (*timer..timer * 1.05 + 0.2).contains(&idle))
                .map(|(_, client)| *client)
        })
    }

    /// The command that shows its libraries in the catalogue of clients; `None` where the catalogue
    /// has none.
    pub fn fix_command(self) -> Option<&'static str> {
        Some(match self {
            Client::Node => "intact fix node",
            Client::Python => "intact fix python",
            Client::Java => "intact fix java",
            Client::Go => "intact fix go",
            Client::Rust => "intact fix rust",
            // those of both are found by the list that it prints without a name
            Client::GoOrRust => "intact fix",
            Client::Ruby => "intact fix ruby",
            Client::Php => "intact fix php",
            Client::Curl => "intact fix curl",
            Client::DotNet | Client::Nginx => return None,
        })
    }

    /// What its library calls the remedy; `None` where it has none.
    pub fn advice(self, remedy: Remedy) -> Option<String> {
        if self == Client::GoOrRust {
            let both = [Client::Go, Client::Rust].into_iter();
            let both: Vec<String> = both.filter_map(|one| one.advice(remedy)).collect();
            return (!both.is_empty()).then(|| both.join("; "));
        }
        self.own_advice(remedy).map(str::to_owned)
    }

    fn own_advice(self, remedy: Remedy) -> Option<&'static str> {
        use Client::*;
        use Remedy::*;
        Some(match (self, remedy) {
            (Node, ShareClient) => {
                "Node: one `new http.Agent({ keepAlive: true })` (undici: one Agent; AWS SDK v3: one client) made outside the handler and given to every call"
            }
            (Node, Drain) => {
                "Node: `res.resume()` on http, `await res.arrayBuffer()` on fetch, `body.dump()` on undici, on the error path too"
            }
            (Node, WidenPool) => {
                "Node: `maxFreeSockets` and `maxSockets` of http.Agent, `connections` of undici"
            }
            (Node, ShortenIdle) => {
                "Node: `timeout` of http.Agent (agentkeepalive: `freeSocketTimeout`), `keepAliveTimeout` of undici's Agent"
            }
            (Node, LengthenIdle) => {
                "Node: `keepAliveTimeout` of undici's Agent (4 s by default), `timeout` of http.Agent"
            }
            (Node, StopClosing) => {
                "Node: an http.Agent without `keepAlive: true` sends it (before Node 19 the global one too), and so does `agent: false`"
            }
            (Python, StopClosing) => {
                "Python: urllib.request always sends it, aiohttp with TCPConnector(force_close=True); else a header set by hand"
            }
            (Java, StopClosing) => {
                "Java: -Dhttp.keepAlive=false of HttpURLConnection, a `Connection` header set by hand"
            }
            (Ruby, StopClosing) => "Ruby: Net::HTTP sends it outside of a block of Net::HTTP.start",
            (Php, StopClosing) => "PHP: streams (file_get_contents) send it; use one curl handle",
            (Python, ShareClient) => {
                "Python: one requests.Session, httpx.Client, aiohttp.ClientSession or boto3 client for the life of the program; requests.get and urllib.request cannot reuse"
            }
            (Python, Drain) => {
                "Python: read `response.content` also with stream=True (urllib3: `drain_conn()`, aiohttp: `await response.read()`)"
            }
            (Python, WidenPool) => {
                "Python: HTTPAdapter(pool_maxsize=N) in requests (10 by default), PoolManager(maxsize=N) in urllib3 (1), httpx.Limits(max_keepalive_connections=N) (20), Config(max_pool_connections=N) in boto3 (10)"
            }
            (Python, ShortenIdle) => {
                "Python: httpx.Limits(keepalive_expiry=S), aiohttp.TCPConnector(keepalive_timeout=S); requests and boto3 have no idle limit, so let them retry"
            }
            (Python, LengthenIdle) => {
                "Python: httpx.Limits(keepalive_expiry=S) (5 s by default), aiohttp.TCPConnector(keepalive_timeout=S) (15 s)"
            }
            (Java, ShareClient) => {
                "Java: one java.net.http.HttpClient, OkHttpClient or CloseableHttpClient for the life of the program"
            }
            (Java, Drain) => {
                "Java: read getInputStream and getErrorStream to their end, EntityUtils.consume in Apache's client"
            }
            (Java, WidenPool) => {
                "Java: -Dhttp.maxConnections=N for HttpURLConnection (5 by default), setMaxConnPerRoute in Apache's client, ConnectionPool(N, ...) in OkHttp (5)"
            }
            (Java, ShortenIdle) => {
                "Java: -Djdk.httpclient.keepalive.timeout=S, ConnectionPool's keepAliveDuration in OkHttp (5 min by default), evictIdleConnections in Apache's client"
            }
            (Java, LengthenIdle) => {
                "Java: -Djdk.httpclient.keepalive.timeout=S, ConnectionPool's keepAliveDuration in OkHttp"
            }
            (Go, ShareClient) => "Go: one http.Client, never a new http.Transport for a call",
            (Go, Drain) => {
                "Go: io.Copy(io.Discard, resp.Body) before resp.Body.Close(), on the error path too"
            }
            (Go, WidenPool) => "Go: Transport.MaxIdleConnsPerHost (2 by default)",
            (Go, ShortenIdle) => {
                "Go: Transport.IdleConnTimeout (90 s in http.DefaultTransport, none in a Transport of your own)"
            }
            (Go, LengthenIdle) => "Go: Transport.IdleConnTimeout",
            (Go, StopClosing) => "Go: Transport.DisableKeepAlives and Request.Close must be false",
            (Rust, ShareClient) => "Rust: one reqwest::Client, cloned",
            (Rust, Drain) => "Rust: `response.bytes().await`, also when only the status matters",
            (Rust, WidenPool) => "Rust: pool_max_idle_per_host",
            (Rust, ShortenIdle | LengthenIdle) => "Rust: pool_idle_timeout (90 s by default)",
            (Go, CheckAlive) => {
                "Go: `Transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second}` (before Go 1.24: ReadIdleTimeout of golang.org/x/net/http2)"
            }
            (Rust, CheckAlive) => "Rust: http2_keep_alive_interval and http2_keep_alive_while_idle",
            (Node, CheckAlive) => {
                "Node: `session.ping()` on a timer, and `session.destroy()` where it gets no reply"
            }
            (Java, CheckAlive) => "Java: pingInterval of OkHttpClient",
            (DotNet, CheckAlive) => ".NET: SocketsHttpHandler.KeepAlivePingDelay",
            (Ruby, ShareClient) => {
                "Ruby: Net::HTTP.start with a block around all calls, or net-http-persistent; Net::HTTP.get cannot reuse"
            }
            (Ruby, LengthenIdle | ShortenIdle) => {
                "Ruby: keep_alive_timeout of Net::HTTP (2 s by default)"
            }
            (Php, ShareClient) => {
                "PHP: one curl handle (or one Guzzle client) for all calls of a process; file_get_contents cannot reuse"
            }
            (DotNet, ShareClient) => {
                ".NET: one static HttpClient or IHttpClientFactory, never one in `using`"
            }
            (DotNet, ShortenIdle | LengthenIdle) => {
                ".NET: SocketsHttpHandler.PooledConnectionIdleTimeout (1 min by default)"
            }
            (Curl, ShareClient) => {
                "curl: give one process all the URLs (several on its command line, or -K FILE)"
            }
            (Nginx, ShareClient | StopClosing) => {
                "nginx: an upstream block with `keepalive N;`, and in each location that sets headers `proxy_http_version 1.1;` and `proxy_set_header Connection \"\";`"
            }
            (Nginx, WidenPool) => "nginx: `keepalive N;` in the upstream block",
            (Nginx, ShortenIdle | LengthenIdle) => {
                "nginx: `keepalive_timeout` in the upstream block (60 s by default)"
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(command: Option<&str>) -> Counts {
        Counts {
            commands: command.into_iter().map(|name| (name.into(), 3)).collect(),
            ..Counts::default()
        }
    }

    #[test]
    fn a_client_is_detected_by_its_command_before_its_timer() {
        let of = |command, idle| Client::recognise(&counts(command), idle);
        assert_eq!(of(Some("/usr/bin/python3.12"), None), Some(Client::Python));
        assert_eq!(of(Some("node"), Some(90_000_000_000)), Some(Client::Node));
        assert_eq!(
            of(Some("shop"), Some(90_100_000_000)),
            Some(Client::GoOrRust)
        );
        assert_eq!(of(Some("shop"), Some(50_000_000_000)), None);
        assert_eq!(of(None, None), None);
        let agents = |name: &str| Counts {
            agents: [(name.into(), 3)].into(),
            ..counts(None)
        };
        let of = |name: &str| Client::recognise(&agents(name), Some(90_000_000_000));
        assert_eq!(of("python-requests/2.31.0"), Some(Client::Python));
        assert_eq!(of("okhttp/4.12.0"), Some(Client::Java));
        assert_eq!(of("shop/1.0"), Some(Client::GoOrRust));
    }
}
