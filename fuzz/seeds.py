#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets whose format is their own: `seeds.py CORPUS [LEDGER ...]`.

Each target gets a folder of its own name in CORPUS. Seeds come from `fixtures/`, from `docs/reference/model.md`, from the ledger folders that
are named, and for `elf` from a C program that is compiled here (it needs `gcc`).
"""

import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCERS = ["audit", "bench", "check", "compare", "lambda", "watch"]
RUN = {
    "id": "0" * 32, "schema": "intact.ledger/1", "version": "0.1.0", "vantage": "client",
    "started": "2026-11-21T11:07:07Z", "clock": "monotonic", "host": {"os": "linux", "arch": "x86_64"},
    "variants": [{"name": "keepalive=on", "axes": {"keepalive": "on", "http": "1.1", "c": "1"}},
                 {"name": "keepalive=off", "axes": {"keepalive": "off", "http": "1.1", "c": "1"}}],
    "varied": ["keepalive"], "argv": [], "rows": "all",
}
FILES = {"run.json": b"r", "events.jsonl.zst": b"z", "tally.json": b"t", "server-profile.json": b"p", "end.json": b"n"}


def ledgers(named):
    for number, path in enumerate(sorted((ROOT / "fixtures/golden").glob("*/*.jsonl"))):
        lines = path.read_bytes().split(b"\n", 1)[1]
        for producer in [PRODUCERS[number % len(PRODUCERS)], "watch"]:
            run = json.dumps(RUN | {"producer": producer}).encode()
            yield b"\x1e".join([b"r" + run, b"e" + lines])
    for folder in named:
        parts = [kind + (folder / name).read_bytes() for name, kind in FILES.items() if (folder / name).exists()]
        # compressed bytes may hold the separator
        events = subprocess.run(["zstd", "-dcq", folder / "events.jsonl.zst"], capture_output=True).stdout
        if events:
            parts = [part for part in parts if part[:1] != b"z"] + [b"e" + events[:60_000]]
        yield b"\x1e".join(parts)


def chains():
    yield re.search(r"```toml\n(.*?)```", (ROOT / "docs/reference/model.md").read_text(), re.S)[1].encode()
    yield b'[client]\ncalls = [{ to = "a", rtt = "30ms", dns = "5ms", tls = "1.2-resumed", crypto = "1ms", answer = "20kB" }]\n[service.a]\nwork = "2ms"\n'
    yield b'[client]\ncalls = [{ to = "a", rtt = "1ms", http = "3", group = "g", at-once = true, times = 7 }]\n[service.a]\n'


def runtime_clients():
    root = b"/2018-06-01/runtime/"
    line = b"Host: 127.0.0.1:9001\r\n"
    get = b"GET " + root + b"invocation/next HTTP/1.1\r\n" + line + b"\r\n"

    def post(path, body, more=b""):
        return b"POST " + root + path + b" HTTP/1.1\r\n" + line + more + b"Content-Length: %d\r\n\r\n" % len(body) + body

    failed = b'{"errorMessage":"socket hang up","errorType":"Error","stackTrace":[]}'
    chunked = b"POST " + root + b"invocation/0/response HTTP/1.1\r\n" + line + b"Transfer-Encoding: chunked\r\n\r\n4\r\n\"ok\"\r\n0\r\nA: b\r\n\r\n"
    answer = post(b"invocation/0/response", b'"ok"')
    for conversation in [
        get + answer + get + post(b"invocation/1/error", failed) + get,
        get + chunked + answer + get,
        get + post(b"invocation/0/response", b"x" * 300, b"Expect: 100-continue\r\n") + get,
        post(b"init/error", failed, b"Connection: close\r\n") + get,
        get.replace(b"1.1", b"1.0") + b"GET /nothing HTTP/1.1\r\n" + line + b"\r\n" + b"PUT / HTTP/1.1\r\n\r\n",
    ]:
        yield b"\x07" + conversation


def name_lists():
    lists = [
        b"7f10a0001000 40 LazyCompile:~handler /srv/server.js:12\n7f10a0001040 20 Function:*next node:events:513\n",
        b"0x7f10a0002000 0x80 py::main:/srv/app.py\n7f10a0001000 8 JS:~second a.js:1\n7f10a0001000 10 again\nzz 1 x\n\n",
        b"ffffffff81000000 T _text\nffffffff81000040 t tcp_sendmsg\t[tcp]\n0000000000000000 A absolute\nffffffff81000100 W weak\n",
    ]
    for text in lists:
        yield b"\x80" + text


PROGRAM = """
namespace shop { template <class T> struct Cart { T total; T add(T price); };
template <class T> __attribute__((noinline)) T Cart<T>::add(T price) { return total += price; } }
extern "C" __attribute__((noinline)) int leaf(int n) { volatile char room[40]; room[n % 40] = 1; return room[0] + n; }
extern "C" int middle(int n) { shop::Cart<long> cart{n}; return leaf(n) + (int)cart.add(2); }
extern "C" int _start() { return middle(3); }
"""


def images():
    # the page of .text, stack pointer and instruction, then a stack of return addresses
    stack = b"".join(struct.pack("<Q", 0x400000 + at) for at in (0x20, 0x40, 0x60, 0x90))
    head = struct.pack("<HHHHHBB", 1, 0, 0x100, 0x1010, 0, len(stack), 0)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "a.cc", Path(folder) / "a"
        source.write_text(PROGRAM)
        for options in [["-g0"], ["-shared", "-fPIC"], ["-s"], ["-static"], ["-fno-asynchronous-unwind-tables", "-g1"]]:
            command = ["gcc", "-O1", "-nostdlib", "-Wl,--build-id=none", *options, "-o", out, source]
            if subprocess.run(command, capture_output=True).returncode == 0:
                yield head + stack + out.read_bytes()


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def conversations():
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    kept = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5, max=3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    last = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\ngone"
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok
    redirect = b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
    timeout = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    http1 = [[[ok] * 6], [[kept] * 4, [last]], [[interim, ok], [ok + timeout]], [[redirect], [ok, ok]], [[ok + b"\x18"], [b"\x18"], [ok]],
             [[ok[:25]], [ok[:40]], [b"garbage\r\n\r\n"]]]
    for parts in http1:
        for how in (0, 4, 8):
            yield bytes([how]) + b"\x1e".join(b"\x1f".join(part) for part in parts)
    settings, ack = frame(4, 0, 0, struct.pack(">HIHI", 3, 100, 4, 65535)), frame(4, 1, 0, b"")

    def answer(stream):
        return frame(1, 4, stream, b"\x88\x5c\x012") + frame(0, 1, stream, b"ok")

    goaway = frame(7, 0, 0, struct.pack(">II", 1, 0))
    http2 = [[settings + ack + answer(1), answer(3), answer(5), answer(7)], [settings, ack + answer(1) + goaway],
             [settings + ack + frame(1, 5, 1, b"\x8d"), frame(3, 0, 3, struct.pack(">I", 7)), frame(6, 0, 0, b"12345678")],
             [settings + frame(8, 0, 0, struct.pack(">I", 1)) + answer(1), answer(3) + answer(2)]]
    for part in http2:
        for how in (1, 5):
            yield bytes([how]) + b"\x1e".join([b"\x02" + b"\x1f".join(part), b"\x1f".join([ok, kept])])
    yield b"\x02" + b"\x1f".join([b"\x15\x03\x03\x00\x02\x02\x28", ok])


def packets(path):
    """The packets of a capture: pcap, or pcapng (little-endian)."""
    data = path.read_bytes()
    if data[:4] == b"\n\r\r\n":
        at = 0
        while at + 28 <= len(data):
            kind, length = struct.unpack_from("<II", data, at)
            if kind == 6:
                yield data[at + 28:at + 28 + struct.unpack_from("<I", data, at + 20)[0]]
            at += length
        return
    order, at = "<" if data[:4] == b"\xd4\xc3\xb2\xa1" else ">", 24
    while at + 16 <= len(data):
        (length,) = struct.unpack_from(order + "I", data, at + 8)
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def streams(path):
    """The payloads of each TCP connection of a capture of Ethernet: (is of the client, bytes), in order of time."""
    connections = {}
    for packet in packets(path):
        ip = packet[14:]
        if len(ip) < 40 or ip[0] >> 4 != 4 or ip[9] != 6:
            continue
        tcp = ip[(ip[0] & 15) * 4:struct.unpack_from(">H", ip, 2)[0]]
        ends = [(ip[12:16], tcp[:2]), (ip[16:20], tcp[2:4])]
        payload = tcp[(tcp[12] >> 4) * 4:]
        # who speaks first, or sends the SYN, is the client
        client, pieces = connections.setdefault(frozenset(ends), (ends[0], []))
        if payload:
            pieces.append((ends[0] == client, payload))
    return [pieces for _, pieces in connections.values()]


def observed():
    """As the crate arbitrary reads them: four flags, no handshake, then pieces of bytes as they are. Each element of a list follows
    a byte that says that there is one."""
    for name in ["tls-suites.pcapng", "tls-1.2-stream-keylog.pcap", "nginx-curl.pcap", "pipelined-requests.pcap", "websocket.pcap", "one_http_stream_rst.pcap"]:
        for pieces in streams(ROOT / "fixtures/captures" / name)[:8]:
            for flags in (b"\0\0\0\1", b"\0\0\1\1", b"\0\1\1\1"):
                seed = flags + b"\3"
                for is_client, payload in pieces:
                    text = b"".join(bytes([1, byte]) for byte in payload[:4000]) + b"\0"
                    piece = b"\1" + bytes([is_client, 0]) + text + struct.pack("<HB", 900, 0)
                    if len(seed) + len(piece) > 30_000:
                        break
                    seed += piece
                yield seed + b"\0"


def timer_configurations():
    """The texts in the tests of each reader, and hops."""
    texts = [b"80", b"lb: idle 60s, keeps 5s", b"a 10s / 5s"]
    for path in sorted((ROOT / "crates/timers/src").glob("**/*.rs")):
        _, _, tests = path.read_text().partition("#[cfg(test)]")
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', tests):
            texts.append(text.encode().decode("unicode_escape").encode("latin-1"))
    for text in texts:
        yield text
        yield b"http { include x; }\x1e" + text
        yield b"Include x\x1e" + text


def differential():
    """Kinds 0 to 5: heads and messages of requests and responses, header blocks, the first flight of TLS."""
    cases = (ROOT / "crates/wire/tests/it/differential/cases.rs").read_text()
    for table, kinds in [("REQUESTS", (0, 2)), ("RESPONSES", (1, 3))]:
        body = re.search(table + r": \[&str; \d+\] = \[\n(.*?)\n\];", cases, re.S)[1]
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', body):
            for kind in kinds:
                yield bytes([kind]) + text.encode().decode("unicode_escape").encode("latin-1")
    for blocks in ["828684410f7777772e6578616d706c652e636f6d\x1e828684be58086e6f2d6361636865", "4803333032580770726976617465"]:
        yield b"\x04" + b"\x1e".join(bytes.fromhex(block) for block in blocks.split("\x1e"))
    hello = (b"\x03\x03" + bytes(range(32)) + b"\x00" + b"\x00\x04\x13\x01\xc0\x2f" + b"\x01\x00" + b"\x00\x22"
             + b"\x00\x00\x00\x0e\x00\x0c\x00\x00\x09a.example" + b"\x00\x10\x00\x05\x00\x03\x02h2" + b"\x00\x2b\x00\x03\x02\x03\x04")
    message = b"\x01" + struct.pack(">I", len(hello))[1:] + hello
    for cut in (len(message), 20):
        parts = [message[:cut], message[cut:]]
        yield b"\x05" + b"".join(b"\x16\x03\x01" + struct.pack(">H", len(part)) + part for part in parts if part)


def grpc_types():
    """A descriptor set with a message in JSON, and its files as responses of reflection, together and one by one."""
    shop = (ROOT / "fixtures/grpc/shop.binpb").read_bytes()

    def varint(number):
        low = bytes([number & 0x7F | (0x80 if number > 0x7F else 0)])
        return low + varint(number >> 7) if number > 0x7F else low

    def field(number, value):
        return bytes([number << 3 | 2]) + varint(len(value)) + value

    def files(at):
        while at < len(shop):
            length, shift, at = 0, 0, at + 1
            while True:
                length, shift, at = length | (shop[at] & 0x7F) << shift, shift + 7, at + 1
                if shop[at - 1] < 0x80:
                    break
            yield shop[at : at + length]
            at += length

    yield b"\x00" + shop + b'\x1e{"name":"x","prices":{"a":1},"shelves":[1],"addedAt":"1970-01-01T00:00:01Z"}'
    yield b"\x00" + shop + b'\x1e{"city":"x","gift":true,"picture":"AP8=","colour":"RED"}'
    both = list(files(0))
    yield b"\x01" + field(4, b"".join(field(1, file) for file in both))
    yield b"\x01" + b"\x1e".join(field(4, field(1, file)) for file in reversed(both))
    yield b"\x01" + field(7, b"\x08\x05" + field(2, b"no")) + b"\x1e" + field(6, field(1, field(1, b"shop.Cart")))
    question = field(4, b"shop.Cart")
    yield b"\x02" + b"\0" + struct.pack(">I", len(question)) + question


def quic_parameters():
    """A server's parameters: limits, a retry, a preferred address, a reserved one."""
    idle, streams = bytes([1, 4, 0x80, 0, 0x75, 0x30]), bytes([8, 2, 0x40, 0x64])
    data = b"".join(bytes([number, 4, 0x80, 0x10, 0, 0]) for number in (4, 5, 6, 7))
    ids = bytes([0, 8]) + bytes(8) + bytes([15, 8]) + bytes(8)
    yield idle + streams + data + ids
    yield ids + bytes([16, 8]) + bytes(8) + bytes([2, 16]) + bytes(16) + bytes([12, 0, 0x1B, 3, 1, 2, 3])
    yield ids + bytes([13, 41]) + bytes(24) + bytes([0]) + bytes(16) + idle


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    corpus = Path(sys.argv[1])
    made = {
        "ledger": ledgers([Path(name) for name in sys.argv[2:]]), "model": chains(), "lambda_api": runtime_clients(),
        "perf_map": name_lists(), "elf": images(), "check_conversation": conversations(),
        "differential": differential(), "observe": observed(), "timers": timer_configurations(),
        "grpc_types": grpc_types(), "quic_parameters": quic_parameters(),
    }
    for target, seeds in made.items():
        folder = corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        for count, seed in enumerate(seeds, 1):
            (folder / f"seed-{count:03}").write_bytes(seed)
        print(f"{target}: {count}")


main()
