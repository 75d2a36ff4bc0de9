#!/usr/bin/env python3
"""What being watched costs: one small client plain, under `intact watch` in both modes and under strace, in interleaved rounds.

    docs/internals/cost.py target/release/intact [ROUNDS]

Needs cc, nginx and strace. The load is bounded: 20,000 exchanges or 12,000 connections a round and kind, on loopback.
Prints the median over rounds of the client's own p50, and of its ratio to the plain run of the same round; and the same of
the processor time of client and watcher together, per exchange (nginx not in it).
"""
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

NGINX = """worker_processes 1; daemon off; pid {0}/pid; error_log {0}/error.log;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 10000000; keepalive_timeout 600s;
 client_body_temp_path {0}/1; proxy_temp_path {0}/2; fastcgi_temp_path {0}/3; uwsgi_temp_path {0}/4; scgi_temp_path {0}/5;
 server {{ listen 127.0.0.1:{1} backlog=4096; location / {{ return 200 "hello world\\n"; }} }} }}"""


def run(words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return float(done.stdout), cpu


def main(intact, rounds):
    with tempfile.TemporaryDirectory() as folder:
        client = f"{folder}/cost"
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cost.c")
        subprocess.run(["cc", "-O2", "-o", client, source], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(f"{folder}/nginx.conf", "w") as conf:
            conf.write(NGINX.format(folder, port))
        nginx = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf"], stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            watch = [intact, "watch", "--quiet", "--keys", "off"]
            kinds = {
                "plain": [],
                "relay": [*watch, "--mode", "relay", "--"],
                "passthrough": [*watch, "--mode", "passthrough", "--"],
                "strace": ["strace", "-f", "-e", "trace=network", "-o", "/dev/null"],
            }
            for what, count in (("keep", 20000), ("new", 12000)):
                seen = {kind: [] for kind in kinds}
                for _ in range(rounds):
                    for kind, words in kinds.items():
                        p50, cpu = run([*words, client, what, str(count), str(port)])
                        seen[kind].append((p50, cpu / count * 1e6))
                for kind, all_of_it in seen.items():
                    pairs = list(zip(all_of_it, seen["plain"]))
                    p50 = statistics.median(one[0] for one in all_of_it)
                    cpu = statistics.median(one[1] for one in all_of_it)
                    by_p50 = statistics.median(one[0] / plain[0] for one, plain in pairs)
                    by_cpu = statistics.median(one[1] / plain[1] for one, plain in pairs)
                    print(f"{what:4} {kind:11} p50 {p50:6.1f} us ({by_p50:4.2f} x plain)   cpu {cpu:6.1f} us ({by_cpu:4.2f} x plain)", flush=True)
        finally:
            nginx.terminate()
            nginx.wait()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9)
