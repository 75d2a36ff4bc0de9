"""The rows of a NetLog: servers, and a page that asks them, for Chromium: browsed.py FILE fires|does-not RULE..."""

import os
import ssl
import subprocess
import sys
import threading
import time

os.environ.update(SERVER="127.0.0.1", CLIENT="127.0.0.1")
from peer import *

FILE, KIND, RULES = sys.argv[1], sys.argv[2], sys.argv[3:]
FIRES = KIND == "fires"
FOLDER = os.environ["FOLDER"]
ANY_ORIGIN = "Access-Control-Allow-Origin: *\r\n"
done = threading.Event()


def answer(s, request, fields="", body=b"ok"):
    s.sendall(response(ANY_ORIGIN + fields, body))
    return True


def ends_at(number, fields=""):
    """Ends the connection with a response of this number."""

    def respond(s, request, nth):
        is_last = nth == number and FIRES
        return answer(s, request, fields if is_last else "") and not is_last

    return respond


def refuses(is_refused):
    """Ends the connection without a response to some requests."""
    return lambda s, request, nth: not (FIRES and is_refused(request, nth)) and answer(s, request)


def first_two(s, request, nth):
    """Two requests for each connection."""
    time.sleep(0.05 if FIRES == (nth == 1) else 0)
    return answer(s, request, "Connection: close\r\n" if nth == 2 else "") and nth < 2


def three(s, request, nth):
    """Three requests for each connection."""
    time.sleep(0.045 if FIRES == (nth > 1) else 0)
    return answer(s, request, "Connection: close\r\n" if nth == 3 else "") and nth < 3


def resumes(s, request, nth):
    """One request for each connection."""
    return answer(s, request, "Connection: close\r\n") and False


def slowly(s, request, nth):
    """Responds after the hundredths of a second in the path."""
    time.sleep(0.01 * int(request.split()[1][1:] or 0))
    return answer(s, request)


def tls(no_tickets=False, newest=ssl.TLSVersion.TLSv1_3):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{FOLDER}/cert.pem", f"{FOLDER}/key.pem")
    context.set_alpn_protocols(["http/1.1"])
    context.maximum_version = newest
    if no_tickets:
        context.num_tickets = 0
    return context


SERVERS = {
    "closed-before-response": refuses(lambda request, nth: True),
    "broken-response": lambda s, *_: s.sendall(response(ANY_ORIGIN)[: -1 if FIRES else None]) or not FIRES,
    "abandoned-request": slowly,
    "connection-close-sent": ends_at(1, "Connection: close\r\n"),
    "server-closes-early": ends_at(3, "Connection: close\r\n"),
    "retried-request": refuses(lambda request, nth: nth == 2),
    "idle-timeout-race": lambda s, request, nth: answer(s, request, f"Keep-Alive: timeout={1 if FIRES else 60}\r\n"),
    "slower-when-reused": three,
    "first-request-costs-more": first_two,
    "new-connection-per-request": ends_at(1),
    "cold-pool": slowly,
    "waiting-for-pool": slowly,
    "tls-never-resumed": resumes,
    "old-tls": lambda s, request, nth: answer(s, request),
}
OVER_TLS = {
    "cold-pool": tls(),
    "tls-never-resumed": tls(no_tickets=FIRES),
    "old-tls": tls(newest=ssl.TLSVersion.TLSv1_2 if FIRES else ssl.TLSVersion.TLSv1_3),
}


def begin(s, context, rule):
    time.sleep(0.05 if rule == "cold-pool" else 0)
    return context.wrap_socket(s, server_side=True)


def serve_http2(rule, host):
    """A server of Node, which ends with this program."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "browsed.js")
    server = subprocess.Popen(["node", script, rule, KIND, host], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.stdout.readline()
    return server


OVER_HTTP2 = ["h2-stream-limit", "lost-in-drain"]

PAGE = b"""<!doctype html><title>rows</title><img src="/wait"><script>
const pause = (ms) => new Promise((end) => setTimeout(end, ms));
const ask = async (at, fields = {}) => {
  try { await (await fetch(at, { cache: 'no-store', ...fields })).text(); } catch {}
};
const times = async (count, at) => { for (let n = 0; n < count; n++) await ask(at); };
const burst = (count, at, of = () => 20) => Promise.all(Array.from({ length: count }, (_, n) => ask(`${at}/${of(n)}`)));
const rows = {
  'abandoned-request': async (at) => { for (let n = 0; n < 3; n++) await ask(`${at}/${FIRES ? 200 : 1}`, { signal: AbortSignal.timeout(600) }); },
  'server-closes-early': (at) => times(12, at),
  // a FIN that comes with the response is another cause
  'new-connection-per-request': (at) => times(12, at),
  'idle-timeout-race': async (at) => { await times(2, at); await pause(850); await ask(at); },
  'slower-when-reused': (at) => times(24, at),
  'first-request-costs-more': (at) => times(24, at),
  'cold-pool': async (at) => { await (FIRES ? times(2, at) : burst(6, at)); await pause(1100); await burst(6, at); },
  // after the other rows, which would delay its requests
  'waiting-for-pool': async (at) => { await pause(1500); await burst(6, at); await burst(FIRES ? 40 : 6, at, (n) => 5 + 7 * n % 20); },
  'h2-stream-limit': async (at) => { await ask(at); await burst(60, at); },
  'lost-in-drain': async (at) => { await times(2, at); await ask(at, { method: 'POST', body: 'a' }); },
};
const secure = SECURE;
(async () => {
  const all = RULES.map((rule, nth) => (rows[rule] || ((at) => times(4, at)))(`http${secure.includes(rule) ? 's' : ''}://127.1.${nth + 1}.1:8080`));
  await Promise.all(all);
  await fetch('/done');
})();
</script>"""


def page(s, request, nth):
    path = request.split()[1]
    if path == b"/done":
        done.set()
    if path == b"/wait":
        done.wait(20)
    words = {b"RULES": repr(RULES), b"FIRES": "true" if FIRES else "false", b"SECURE": repr([*OVER_TLS, *OVER_HTTP2])}
    text = PAGE
    for name, word in words.items():
        text = text.replace(name, word.encode())
    s.sendall(response("Content-Type: text/html\r\n", text if path == b"/page" else b""))
    return True


for number, rule in enumerate(RULES, 1):
    host = f"127.1.{number}.1"
    if rule in OVER_HTTP2:
        serve_http2(rule, host)
    elif context := OVER_TLS.get(rule):
        serve(SERVERS[rule], lambda s, context=context, rule=rule: begin(s, context, rule), host)
    else:
        serve(SERVERS[rule], host=host)
serve(page)
chromium = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--ignore-certificate-errors"]
chromium += [f"--user-data-dir={FOLDER}/chromium-{KIND}", f"--log-net-log={FILE}", "--dump-dom"]
run = subprocess.run([*chromium, f"http://{SERVER}:{PORT}/page"], capture_output=True)
sys.exit(run.returncode and run.stderr.decode())
