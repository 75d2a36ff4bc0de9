"""Tests that fail when the code under test wastes HTTP connections.

The tests run under `intact watch --windows -- pytest`, which records their connections and judges each window.
"""

import contextlib
import os
import socket

__all__ = ["NotWatched", "expect"]


class NotWatched(RuntimeError):
    """No window can be opened, so nothing was judged."""


@contextlib.contextmanager
def expect(*requirements, fail_on=None, name="a window"):
    """Judges what the process, and processes that it starts, do within the block.

    `requirements` such as "avoidable == 0" must hold; `fail_on` is "warning" or "error", the least severity of a finding that
    fails the block. Raises AssertionError with the findings. A block that raises is not judged.
    """
    __tracebackhide__ = True
    with _connect() as control, control.makefile("rw", encoding="utf-8", newline="\n") as lines:
        lines.write(f"name {_line(name)}\n")
        lines.writelines(f"require {_line(requirement)}\n" for requirement in requirements)
        if fail_on is not None:
            lines.write(f"fail-on {_line(fail_on)}\n")
        lines.write("\n")
        _expect_reply(lines, "open", name)
        yield
        lines.write("end\n")
        _expect_reply(lines, "passed", name)


def _connect():
    path = os.environ.get("INTACT_CONTROL")
    if not path:
        raise NotWatched("INTACT_CONTROL is not set: run the tests as `intact watch --windows -- pytest`")
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        control.connect(path)
    except OSError as error:
        control.close()
        raise NotWatched(f"intact does not listen on {path}: {error}") from error
    return control


def _expect_reply(lines, wanted, name):
    """Reads a reply, which is a word on a line; except for `open`, a text follows until the end of the stream."""
    __tracebackhide__ = True
    lines.flush()
    word = lines.readline().rstrip("\n")
    if word == wanted:
        return
    text = lines.read()
    if word == "failed":
        raise AssertionError(f"intact: {name} does not pass\n{text}")
    raise NotWatched(f"intact: {text.strip() or 'the connection to intact ended'}")


def _line(text):
    return " ".join(str(text).split())
