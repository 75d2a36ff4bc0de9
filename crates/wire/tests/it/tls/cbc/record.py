#!/usr/bin/env python3
"""Records the CBC fixtures beside this file: OpenSSL talks to itself through a relay on loopback.

    python3 record.py        writes NAME.txt: one line a piece ("C" or "S" and hex), then the key log, then what was said

CBC needs OpenSSL: rustls never offers it. Whether MAC or encryption comes first is told by the suite's file name.
"""
import os, pathlib, select, socket, subprocess, tempfile, threading

HERE = pathlib.Path(__file__).parent
CASES = {
    "aes128-sha-mac-first": ("AES128-SHA", ["-no_etm"]),
    "aes128-sha-encrypt-first": ("AES128-SHA", []),
    "aes256-sha256-encrypt-first": ("AES256-SHA256", []),
    "ecdhe-aes256-sha384-mac-first": ("ECDHE-RSA-AES256-SHA384", ["-no_etm"]),
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def relay(listener, port, pieces):
    client, _ = listener.accept()
    server = socket.create_connection(("127.0.0.1", port))
    while True:
        for sock in select.select([client, server], [], [])[0]:
            data = sock.recv(65536)
            if not data:
                return
            pieces.append(("C" if sock is client else "S", data))
            (server if sock is client else client).sendall(data)


def record(name, suite, options, folder):
    cert, key, log = (os.path.join(folder, f) for f in ("cert.pem", "key.pem", name))
    if not os.path.exists(cert):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test.example", "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
    port, pieces = free_port(), []
    common = ["-tls1_2", "-cipher", suite + ":@SECLEVEL=0", "-no_ticket"]
    server = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", cert, "-key", key, "-rev", "-naccept", "1",
                               *common, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while b"ACCEPT" not in server.stdout.readline():
        pass
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=relay, args=(listener, port, pieces))
    thread.start()
    client = subprocess.Popen(["openssl", "s_client", "-quiet", "-connect", "127.0.0.1:%d" % listener.getsockname()[1], "-keylogfile", log, *common],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = b"a question of some length, to need more than one block\n"
    client.stdin.write(said)
    client.stdin.flush()
    answer = client.stdout.readline()
    client.stdin.close()
    client.terminate()
    client.wait()
    thread.join()
    server.wait()
    lines = [f"{side} {data.hex()}" for side, data in pieces]
    lines += [line for line in open(log).read().splitlines() if line.startswith("CLIENT_RANDOM")]
    lines += [f"client said {said.hex()}", f"server said {answer.hex()}"]
    (HERE / f"{name}.txt").write_text("\n".join(lines) + "\n")


with tempfile.TemporaryDirectory() as folder:
    for name, (suite, options) in CASES.items():
        record(name, suite, options, folder)
