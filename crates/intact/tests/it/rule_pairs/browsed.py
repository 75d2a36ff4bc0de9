"""The rows of a NetLog: servers, and a page that asks them, for Chromium: browsed.py FILE fires|does-not RULE..."""

import os
import subprocess
import sys
import threading
import time

os.environ.update(SERVER="127.0.0.1", CLIENT="127.0.0.1")
from peer import *

FILE, KIND, RULES = sys.argv[1], sys.argv[2], sys.argv[3:]
FIRES = KIND == "fires"
FOLDER = os.environ["FOLDER"]
done = threading.Event()


def answer(s, request, fields="", body=b"ok"):
    s.sendall(response("Access-Control-Allow-Origin: *\r\n" + fields, body))
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


SERVERS = {
    "closed-before-response": refuses(lambda request, nth: True),
    "connection-close-sent": ends_at(1, "Connection: close\r\n"),
    "server-closes-early": ends_at(3, "Connection: close\r\n"),
    "retried-request": refuses(lambda request, nth: nth == 2),
    "idle-timeout-race": lambda s, request, nth: answer(s, request, f"Keep-Alive: timeout={1 if FIRES else 60}\r\n"),
    "slower-when-reused": three,
    "first-request-costs-more": first_two,
    "new-connection-per-request": ends_at(1),
}

PAGE = b"""<!doctype html><title>rows</title><img src="/wait"><script>
const pause = (ms) => new Promise((end) => setTimeout(end, ms));
const ask = async (at) => {
  try { await (await fetch(at + '/', { cache: 'no-store' })).text(); } catch {}
};
const times = async (count, at) => { for (let n = 0; n < count; n++) await ask(at); };
const rows = {
  'server-closes-early': (at) => times(12, at),
  'idle-timeout-race': async (at) => { await times(2, at); await pause(850); await ask(at); },
  'slower-when-reused': (at) => times(24, at),
  'first-request-costs-more': (at) => times(24, at),
};
(async () => {
  const all = RULES.map((rule, nth) => (rows[rule] || ((at) => times(4, at)))(`http://127.1.${nth + 1}.1:8080`, FIRES));
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
    text = PAGE.replace(b"RULES", repr(RULES).encode()).replace(b"FIRES", b"true" if FIRES else b"false")
    s.sendall(response("Content-Type: text/html\r\n", text if path == b"/page" else b""))
    return True


for number, rule in enumerate(RULES, 1):
    serve(SERVERS[rule], host=f"127.1.{number}.1")
serve(page)
chromium = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
chromium += [f"--user-data-dir={FOLDER}/chromium-{KIND}", f"--log-net-log={FILE}", "--dump-dom"]
run = subprocess.run([*chromium, f"http://{SERVER}:{PORT}/page"], capture_output=True)
sys.exit(run.returncode and run.stderr.decode())
