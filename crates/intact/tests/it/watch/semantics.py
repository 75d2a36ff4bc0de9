"""What a program can observe of its own connections, one case a function. Each prints facts, never times.

`python3 semantics.py CASE` must print the same watched and unwatched. Servers are threads in here: they are on the accepting
side, which is never touched.
"""

import ctypes
import errno
import hashlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

LOCAL = "127.0.0.1"
TCP_FASTOPEN_CONNECT = 30


def serve(talk, host=LOCAL):
    """A server that hands each connection to `talk`; its address."""
    listener = socket.create_server(
        (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64
    )

    def loop():
        while True:
            connection, peer = listener.accept()
            threading.Thread(target=talk, args=(connection, peer), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()
    return listener.getsockname()


def echo(connection, _peer):
    try:
        while data := connection.recv(65536):
            connection.sendall(data)
    except ConnectionError:
        pass
    connection.close()


def tell_peer(connection, peer):
    connection.sendall(repr(peer[:2]).encode())
    connection.close()


def read_all(connection):
    data = b""
    while part := connection.recv(65536):
        data += part
    return data


TCP_SAVE_SYN, TCP_SAVED_SYN = 27, 28
keep = []


def syn_of(prepare):
    """What the first packet of a connection says, whose socket was prepared so."""
    listener = socket.socket()
    listener.bind((LOCAL, 0))
    listener.setsockopt(socket.IPPROTO_TCP, TCP_SAVE_SYN, 1)
    listener.listen(8)
    client = socket.socket()
    prepare(client)
    client.connect(listener.getsockname())
    accepted, _ = listener.accept()
    syn = accepted.getsockopt(socket.IPPROTO_TCP, TCP_SAVED_SYN, 128)
    tcp = syn[20:]
    # the largest segment is the first option
    return {"tos": syn[1], "ttl": syn[8], "window": tcp[14:16].hex(), "segment": tcp[22:24].hex()}


def options_before_connect():
    tcp = socket.IPPROTO_TCP
    for level, name, value in [
        (socket.IPPROTO_IP, socket.IP_TOS, 0x28),
        (socket.IPPROTO_IP, socket.IP_TTL, 9),
        (tcp, socket.TCP_MAXSEG, 1000),
        (tcp, socket.TCP_WINDOW_CLAMP, 9000),
        (socket.SOL_SOCKET, socket.SO_RCVBUF, 8000),
    ]:
        print(name, syn_of(lambda one: one.setsockopt(level, name, value)))
    print(syn_of(lambda one: None))


def one_port_to_two_destinations():
    ends = [serve(echo), serve(echo)]
    port = 0
    for end in ends:
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind((LOCAL, port))
        one.connect(end)
        keep.append(one)
        print(port in (0, one.getsockname()[1]), one.getpeername() == end)
        port = one.getsockname()[1]


def lengths_of_addresses():
    address = struct.pack("=HH4s", socket.AF_INET, socket.htons(closed_port()[1]), socket.inet_aton(LOCAL))
    libc = ctypes.CDLL(None, use_errno=True)
    for length in [-1, 0, 1, 2, 7, 8, 15, 16, 17, 28, 110, 111, 128, 129, 4096]:
        one = socket.socket()
        room = ctypes.create_string_buffer(address, 8192)
        libc.connect(one.fileno(), room, length)
        print(length, errno.errorcode.get(ctypes.get_errno()))


def families_of_addresses():
    libc = ctypes.CDLL(None, use_errno=True)
    for family in [socket.AF_UNIX, socket.AF_NETLINK, 99, socket.AF_INET6]:
        address = struct.pack("=HH", family, socket.htons(9)) + b"/x" + bytes(40)
        one = socket.socket()
        libc.connect(one.fileno(), address, 28)
        print(family, errno.errorcode.get(ctypes.get_errno()))


def closed_port():
    with socket.create_server((LOCAL, 0)) as listener:
        return listener.getsockname()


HELD = []


def blackhole():
    """An address that never answers: a listener whose queue is full."""
    listener = socket.socket()
    listener.bind((LOCAL, 0))
    listener.listen(0)
    HELD.append(listener)
    filler = fill(listener.getsockname())
    HELD.append(filler)
    return listener.getsockname()


def fill(address):
    filler = socket.socket()
    filler.connect(address)
    return filler


def name(code):
    return errno.errorcode.get(code, code)


def attempt(work):
    try:
        return work()
    except OSError as error:
        return name(error.errno) if error.errno else type(error).__name__


def refused_blocking():
    print(attempt(lambda: socket.socket().connect(closed_port())))


def refused_nonblocking():
    s = socket.socket()
    s.setblocking(False)
    code = s.connect_ex(closed_port())
    if code == errno.EINPROGRESS:
        select.select([], [s], [], 10)
        code = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    print(name(code))


def blackhole_poll():
    s = socket.socket()
    s.setblocking(False)
    print(name(s.connect_ex(blackhole())))
    poll = select.poll()
    poll.register(s, select.POLLIN | select.POLLOUT)
    print(poll.poll(200))
    print(name(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)))


def blackhole_settimeout():
    s = socket.socket()
    s.settimeout(0.2)
    print(attempt(lambda: s.connect(blackhole())))


def blackhole_sndtimeo():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200_000))
    print(name(s.connect_ex(blackhole())))


class Rang(Exception):
    pass


def ring(*_):
    raise Rang


def blackhole_alarm():
    signal.signal(signal.SIGALRM, ring)
    address = blackhole()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        socket.socket().connect(address)
    except Rang:
        print("interrupted")


def alarm_that_restarts():
    count = []
    signal.signal(signal.SIGALRM, lambda *_: count.append(1))
    # without SA_RESTART a signal that comes before we have taken the call shows as EINTR: docs/reference/watch.md
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    s = socket.socket()
    s.settimeout(0.5)
    print(attempt(lambda: s.connect(blackhole())), len(count) > 2)
    signal.setitimer(signal.ITIMER_REAL, 0)


def close_while_connecting():
    address = blackhole()
    for _ in range(20):
        s = socket.socket()
        s.setblocking(False)
        print(name(s.connect_ex(address)))
        s.close()
    with socket.create_connection(serve(echo)) as s:
        s.sendall(b"alive")
        print(s.recv(5))


def names():
    s = socket.socket()
    print(attempt(s.getpeername))
    address = serve(tell_peer)
    s.connect(address)
    print(s.getpeername() == address, repr(s.getsockname()).encode() == read_all(s))


def names_nonblocking():
    address = serve(tell_peer)
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(address)
    select.select([], [s], [], 10)
    print(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.getpeername() == address)
    s.setblocking(True)
    print(repr(s.getsockname()).encode() == read_all(s))


def names_small_buffer():
    s = socket.create_connection(serve(echo))
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(b"\xff" * 16, 16)
    length = ctypes.c_uint(4)
    print(libc.getpeername(s.fileno(), buffer, ctypes.byref(length)), length.value)
    print(buffer.raw[:2], buffer.raw[4:])


def source_bind():
    s = socket.socket()
    s.bind(("127.0.0.7", 0))
    s.connect(serve(tell_peer))
    seen = read_all(s)
    print(s.getsockname()[0], seen.split(b",")[0])


def port_bind():
    with socket.create_server((LOCAL, 0)) as probe:
        port = probe.getsockname()[1]
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((LOCAL, port))
    s.connect(serve(tell_peer))
    seen = read_all(s)
    print(s.getsockname()[1] == port, seen == repr((LOCAL, port)).encode())


def port_bind_without_reuse():
    s = socket.socket()
    s.bind(("", 0))
    port = s.getsockname()[1]
    s.connect(serve(tell_peer))
    print(s.getsockname()[1] == port, read_all(s) == repr((LOCAL, port)).encode())
    print(s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR))


def fastopen_connect():
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
    print(name(s.connect_ex(serve(echo))))
    s.sendall(b"hello")
    print(s.recv(5))


def half_close():
    def count(connection, _peer):
        data = read_all(connection)
        connection.sendall(hashlib.sha256(data).hexdigest().encode() + data)
        connection.close()

    s = socket.create_connection(serve(count))
    data = os.urandom(1000) * 300
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
    answer = read_all(s)
    print(answer == hashlib.sha256(data).hexdigest().encode() + data)


def server_reset():
    def reset(connection, _peer):
        connection.recv(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    s = socket.create_connection(serve(reset))
    s.sendall(b"x")
    print(attempt(lambda: s.recv(10)))


def client_reset():
    seen = []
    done = threading.Event()

    def watch(connection, _peer):
        connection.recv(1)
        seen.append(attempt(lambda: connection.recv(10)))
        done.set()

    s = socket.create_connection(serve(watch))
    s.sendall(b"x")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
    print(done.wait(10), seen)


def server_speaks_first():
    def greet(connection, _peer):
        connection.sendall(b"220 hello\r\n")
        echo(connection, None)

    s = socket.create_connection(serve(greet))
    print(s.recv(100))
    s.sendall(b"QUIT\r\n")
    print(s.recv(100))


def repeated_connect():
    address = serve(echo)
    s = socket.socket()
    s.connect(address)
    print(name(s.connect_ex(address)))
    t = socket.socket()
    t.setblocking(False)
    hole = blackhole()
    print(name(t.connect_ex(hole)), name(t.connect_ex(hole)))


def disconnect_and_reconnect():
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = serve(echo), serve(tell_peer)
    s = socket.create_connection(first)
    s.sendall(b"x")
    s.recv(1)
    print(libc.connect(s.fileno(), b"\0" * 16, 16))
    print(attempt(s.getpeername))
    s.connect(second)
    print(s.getpeername() == second, repr(s.getsockname()).encode() == read_all(s))


def happy_eyeballs():
    """Two attempts at once: the one that answers is used, the other is dropped."""
    slow, fast = socket.socket(), socket.socket()
    for s in (slow, fast):
        s.setblocking(False)
    slow.connect_ex(blackhole())
    fast.connect_ex(serve(echo))
    _, ready, _ = select.select([], [slow, fast], [], 10)
    print([s is fast for s in ready])
    slow.close()
    fast.setblocking(True)
    fast.sendall(b"x")
    print(fast.recv(1))


def spawned_child():
    address = serve(echo)
    code = f"import socket; s = socket.create_connection({address!r}); s.sendall(b'x'); print(s.recv(1))"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def forked_child_inherits():
    s = socket.create_connection(serve(echo))
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        s.sendall(b"from the child")
        os._exit(0)
    os.waitpid(pid, 0)
    print(s.recv(100))


def daemon():
    address = serve(echo)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            s = socket.create_connection(address)
            s.sendall(b"x")
            os.write(writer, s.recv(1))
            os._exit(0)
        os._exit(0)
    print(os.read(reader, 1))


def not_dumpable():
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    s = socket.create_connection(serve(echo))
    s.sendall(b"x")
    print(s.recv(1))


def own_filter():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    code = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(buffer))
    print(libc.prctl(22, 2, program, 0, 0))
    s = socket.create_connection(serve(echo))
    s.sendall(b"x")
    print(s.recv(1))


def refuses_connect():
    """A filter of the program's own forbids it to connect."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    number = 42 if os.uname().machine == "x86_64" else 203
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno.EPERM), (0x06, 0, 0, 0x7FFF0000)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(buffer))
    print(libc.prctl(22, 2, program, 0, 0))
    print(attempt(lambda: socket.create_connection(serve(echo))))


def landlock():
    """Rules of the program's own let it connect to one port."""
    libc = ctypes.CDLL(None, use_errno=True)
    open_port, closed = serve(echo), serve(echo)
    connect, net_port = 2, 2
    rights = struct.pack("QQ", 0, connect)
    rules = libc.syscall(444, rights, len(rights), 0)
    if rules < 0:
        return print("no Landlock")
    libc.syscall(445, rules, net_port, struct.pack("QQ", connect, open_port[1]), 0)
    libc.prctl(38, 1, 0, 0, 0)
    print(libc.syscall(446, rules, 0))

    def both():
        for address in (open_port, closed):
            print(attempt(lambda: bool(connected(address))), flush=True)

    both()
    pid = os.fork()
    if pid == 0:
        both()
        os._exit(0)
    os.waitpid(pid, 0)


def landlock_of_files():
    """Rules for files leave connects alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    execute = 1
    rights = struct.pack("Q", execute)
    rules = libc.syscall(444, rights, len(rights), 0)
    libc.prctl(38, 1, 0, 0, 0)
    print(libc.syscall(446, rules, 0) if rules >= 0 else "no Landlock")
    with connected(serve(echo)) as s:
        s.sendall(b"x")
        print(s.recv(1))


def connected(address):
    """A connected socket, without a lookup that could need a file."""
    s = socket.socket()
    s.connect(address)
    return s


def tell_owner(connection, peer):
    """The user that the other side's socket belongs to, by the kernel's table.

    Other sockets come and go while the table is read, so that a row can be listed twice or be missing."""
    ends = [f"0100007F:{end[1]:04X}" for end in (peer, connection.getsockname())]
    owners = set()
    while not owners:
        with open("/proc/net/tcp") as table:
            rows = [row.split() for row in table]
        owners = {row[7] for row in rows if row[1:3] == ends}
    connection.sendall(repr(sorted(owners)).encode())
    connection.close()


def another_user():
    """A program that gives up root owns its sockets as that user."""
    address, before = serve(tell_owner), socket.socket()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        if os.geteuid() == 0:
            os.setgroups([4, 12])
            os.setgid(65534)
            os.setuid(65534)
        print(read_all(connected(address)))
        # made before the change
        before.connect(address)
        print(read_all(before), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)


def udp():
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind((LOCAL, 0))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(listener.getsockname())
    s.send(b"one")
    data, peer = listener.recvfrom(10)
    print(data, s.getpeername() == listener.getsockname(), peer == s.getsockname())
    t = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    t.sendto(b"two", listener.getsockname())
    print(listener.recvfrom(10)[0])


def unix_socket():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0intact-test-%d" % os.getpid())
    listener.listen()
    s = socket.socket(socket.AF_UNIX)
    s.connect(listener.getsockname())
    print(s.getpeername() == listener.getsockname(), repr(s.getsockname()))


def ipv6():
    address = serve(tell_peer, "::1")
    s = socket.create_connection(address[:2])
    print(s.getpeername()[:2] == address[:2], repr(s.getsockname()[:2]).encode() == read_all(s))


def mapped():
    address = serve(tell_peer)
    s = socket.socket(socket.AF_INET6)
    s.connect(("::ffff:" + address[0], address[1]))
    print(s.getpeername()[0], s.getpeername()[1] == address[1], s.getsockname()[0])
    print(str(s.getsockname()[1]).encode() in read_all(s))


def ipv6_refused():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        address = listener.getsockname()
    print(attempt(lambda: socket.create_connection(address[:2])))


def invalid_arguments():
    libc = ctypes.CDLL(None, use_errno=True)
    s = socket.socket()
    for descriptor, address, length in ((s.fileno(), None, 16), (s.fileno(), b"\2\0", 2), (999, b"\0" * 16, 16)):
        print(libc.connect(descriptor, address, length), name(ctypes.get_errno()))
    print(libc.connect(s.fileno(), struct.pack("H14x", 77), 16), name(ctypes.get_errno()))


def many_threads():
    address = serve(echo)
    results = []

    def work(number):
        for _ in range(10):
            with socket.create_connection(address) as s:
                s.sendall(b"%d" % number)
                results.append(s.recv(10) == b"%d" % number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(results), all(results))


def large_transfer():
    data = os.urandom(4096) * 5000

    def send(connection, _peer):
        connection.sendall(data)
        connection.close()

    s = socket.create_connection(serve(send))
    print(hashlib.sha256(read_all(s)).digest() == hashlib.sha256(data).digest())


def slow_reader():
    """What the other side has not read stays with the sender, as the windows want."""
    held = threading.Event()

    def wait(connection, _peer):
        held.wait(30)
        connection.sendall(str(len(read_all(connection))).encode())
        connection.close()

    s = socket.create_connection(serve(wait))
    s.setblocking(False)
    sent = 0
    while True:
        try:
            sent += s.send(b"x" * 65536)
        except BlockingIOError:
            _, ready, _ = select.select([], [s], [], 0.3)
            if not ready:
                break
    held.set()
    s.setblocking(True)
    s.shutdown(socket.SHUT_WR)
    print(int(read_all(s)) == sent, sent < 64 << 20)


def epoll_edge():
    """Edge-triggered readiness comes once the connection is there, and data wakes again."""
    s = socket.socket()
    s.setblocking(False)
    poll = select.epoll()
    s.connect_ex(serve(echo))
    poll.register(s, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    events = poll.poll(10)
    print([event & select.EPOLLOUT for _, event in events])
    s.send(b"x")
    seen = 0
    deadline = time.monotonic() + 10
    while not seen & select.EPOLLIN and time.monotonic() < deadline:
        for _, event in poll.poll(1):
            seen |= event
    print(bool(seen & select.EPOLLIN), bool(seen & (select.EPOLLHUP | select.EPOLLERR)), s.recv(1))


def as_many_as_may_be():
    """More connections at once than a relay with the same limit has descriptors for."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= hard)
    address = serve(echo)
    held = []
    for _ in range(120):
        s = socket.create_connection(address)
        s.sendall(b"x")
        held.append(s)
    print(all(s.recv(1) == b"x" for s in held))


def keepalive_options():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
    s.connect(serve(echo))
    print(s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE))


def inherited():
    import resource

    print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    with open("/proc/self/status") as status:
        print([line for line in status if line.startswith(("SigIgn", "SigBlk", "SigCgt", "Groups"))])
    print(sorted(int(fd) for fd in os.listdir("/proc/self/fd")))
    print(os.umask(0), resource.getrlimit(resource.RLIMIT_NOFILE), os.getcwd(), os.getpgrp() == os.getpid())
    ours = ("SSLKEYLOGFILE", "NODE_OPTIONS")
    print(sorted(key for key in os.environ if key not in ours))


def exit_code():
    sys.exit(42)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


CASES = [
    case
    for key, case in list(globals().items())
    if callable(case)
    and getattr(case, "__module__", None) == "__main__"
    and not isinstance(case, type)
    and key
    not in ("serve", "echo", "tell_peer", "tell_owner", "connected", "read_all", "closed_port", "blackhole", "fill", "name", "attempt", "ring", "syn_of")
]

if __name__ == "__main__":
    if sys.argv[1] == "list":
        print(" ".join(case.__name__ for case in CASES))
    else:
        globals()[sys.argv[1]]()
