#!/usr/bin/env python3
"""Runs `intact` against other implementations of HTTP/3, in both directions: `peers.py INTACT`.

Servers: Caddy (if it is installed), quic-go (if Go is), aioquic. Clients: quic-go, aioquic, curl by curl_cffi. Needs
`pip install aioquic curl_cffi` and `openssl`. Everything runs on loopback, in a folder that is deleted at the end. Prints a line
for each pair, with what both sides counted. The exit code is 1 if one of them failed.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CERTIFICATES = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca \
  -addext basicConstraints=critical,CA:TRUE
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out s.csr -subj /CN=localhost
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\\nextendedKeyUsage=serverAuth' > ext
openssl x509 -req -in s.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile ext
"""
CADDYFILE = """
{
  auto_https off
  admin off
}
https://localhost:PORT, https://127.0.0.1:PORT {
  tls cert.pem key.pem
  respond "ok" 200
}
"""


def aioquic_server(port):
    """A server of aioquic, until it is ended."""
    from aioquic.asyncio import QuicConnectionProtocol, serve
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.events import ProtocolNegotiated

    class Protocol(QuicConnectionProtocol):
        http = None

        def quic_event_received(self, event):
            if isinstance(event, ProtocolNegotiated):
                self.http = H3Connection(self._quic)
            for one in self.http.handle_event(event) if self.http else ():
                if isinstance(one, HeadersReceived):
                    self.http.send_headers(one.stream_id, [(b":status", b"200"), (b"content-length", b"2")])
                    self.http.send_data(one.stream_id, b"ok", True)
                    self.transmit()

    async def run():
        tickets = {}
        config = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=False)
        config.load_cert_chain("cert.pem", "key.pem")
        await serve(
            "127.0.0.1",
            port,
            configuration=config,
            create_protocol=Protocol,
            session_ticket_fetcher=lambda name: tickets.pop(name, None),
            session_ticket_handler=lambda one: tickets.__setitem__(one.ticket, one),
        )
        await asyncio.Future()

    asyncio.run(run())


def aioquic_client(port):
    """Three connections with three requests each: full, resumed, with early data."""
    from aioquic.asyncio import QuicConnectionProtocol
    from aioquic.asyncio.client import connect
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DataReceived, HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration

    class Protocol(QuicConnectionProtocol):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.http, self.waiting = H3Connection(self._quic), {}

        def get(self, path):
            stream = self._quic.get_next_available_stream_id()
            self.waiting[stream] = [asyncio.get_event_loop().create_future(), 0]
            fields = {":method": "GET", ":scheme": "https", ":authority": "localhost", ":path": path}
            fields = [(name.encode(), value.encode()) for name, value in fields.items()]
            self.http.send_headers(stream, fields, end_stream=True)
            self.transmit()
            return self.waiting[stream][0]

        def quic_event_received(self, event):
            for one in self.http.handle_event(event):
                if isinstance(one, (HeadersReceived, DataReceived)):
                    waiting = self.waiting[one.stream_id]
                    waiting[1] += len(getattr(one, "data", b""))
                    if one.stream_ended:
                        waiting[0].set_result(waiting[1])

    async def run():
        tickets = []
        for nth in range(3):
            config = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=True, server_name="localhost")
            config.load_verify_locations("ca.pem")
            config.session_ticket = tickets[-1] if tickets else None
            early = nth == 2
            peer = connect(
                "127.0.0.1",
                port,
                configuration=config,
                create_protocol=Protocol,
                session_ticket_handler=tickets.append,
                wait_connected=not early,
            )
            async with peer as protocol:
                paths = ["/bytes/100", "/bytes/200000", "/"]
                sizes = await asyncio.gather(*map(protocol.get, paths))
                assert sizes == [100, 200000, 100], sizes
                # the tickets
                await asyncio.sleep(0.2)

    asyncio.run(run())


def curl_client(port):
    """Three requests by libcurl."""
    from curl_cffi import CurlHttpVersion, requests

    session = requests.Session(verify="ca.pem")
    for _ in range(3):
        response = session.get(f"https://localhost:{port}/bytes/100", http_version=CurlHttpVersion.V3ONLY)
        assert (response.status_code, len(response.content), response.http_version) == (200, 100, 30)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def this(role, port):
    return [sys.executable, os.path.abspath(__file__), role, str(port)]


def bench(intact, name, command, port, options):
    """`intact bench` of a server that is started for it."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    words = f"bench https://localhost:{port}/ -4 --http 3 --cacert ca.pem -n 40 --rounds 1 --json"
    run = subprocess.run([intact, *words.split(), *options], capture_output=True, text=True, timeout=120)
    server.kill()
    server.wait()
    variants = json.loads(run.stdout)["variants"]
    for one in variants:
        shares = {key: one.get(key) for key in ("resumed_share", "early_data_share")}
        print(f"server {name:8} {one['name']:40} ok {one['requests']['ok']}, failed {one['requests']['failed']}, {shares}")
    return all(one["requests"]["ok"] == 40 for one in variants)


def serve(intact, name, command, port):
    """A client against `intact serve`."""
    words = f"serve --listen 127.0.0.1:0 --tls-listen 127.0.0.1:{port} --http3 --early-data --cert cert.pem --key key.pem"
    server = subprocess.Popen([intact, *words.split(), "--json=serve.json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    client = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)
    time.sleep(0.3)
    server.send_signal(signal.SIGINT)
    server.wait()
    with open("serve.json") as file:
        counts = json.load(file)
    kinds = {one["kind"]: one["count"] for one in counts["connections"]["handshakes"]}
    requests = counts["requests"]
    print(f"client {name:8} exit {client.returncode}, requests ok {requests['ok']}, failed {requests['failed']}, handshakes {kinds}")
    if client.returncode:
        print(client.stdout, client.stderr)
    return client.returncode == 0 and requests["ok"] > 0 and not requests["failed"]


def main(intact):
    intact = os.path.abspath(intact)
    subprocess.run(CERTIFICATES, shell=True, check=True, capture_output=True)
    options = ["--keepalive", "on,off", "--resume", "off,on", "--early-data", "off,on"]
    good = []
    port = free_port()
    good.append(bench(intact, "aioquic", this("aioquic-server", port), port, options))
    if shutil.which("caddy"):
        port = free_port()
        with open("Caddyfile", "w") as file:
            file.write(CADDYFILE.replace("PORT", str(port)))
        good.append(bench(intact, "caddy", ["caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"], port, options))
    port = free_port()
    good.append(serve(intact, "aioquic", this("aioquic-client", port), port))
    good.append(serve(intact, "curl", this("curl-client", port), port))
    if shutil.which("go"):
        program = os.path.join(os.getcwd(), "quicgo")
        subprocess.run(["go", "build", "-o", program, "."], cwd=os.path.join(HERE, "quicgo"), check=True)
        address = f"localhost:{port}"
        good.append(bench(intact, "quic-go", [program, "-mode", "server", "-addr", f"127.0.0.1:{port}"], port, options))
        good.append(serve(intact, "quic-go", [program, "-mode", "client", "-addr", address], port))
        good.append(serve(intact, "quic-go", [program, "-mode", "client", "-addr", address, "-early"], port))
    return 0 if all(good) else 1


ROLES = {"aioquic-server": aioquic_server, "aioquic-client": aioquic_client, "curl-client": curl_client}

if __name__ == "__main__":
    if sys.argv[1] in ROLES:
        ROLES[sys.argv[1]](int(sys.argv[2]))
    else:
        binary = os.path.abspath(sys.argv[1])
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.exit(main(binary))
