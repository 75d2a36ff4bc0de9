"""The kit on a real client and `intact serve`; run by `cargo xtask kits` as `intact watch --windows -- pytest`."""

import os
import re
import subprocess
import sys

import pytest
import requests

import intact_http

URL = os.environ["INTACT_TEST_SERVER"]


def test_requests_on_one_session_pass(intact):
    with intact.expect("avoidable == 0", "connections == 1", "requests == 3", fail_on="warning"):
        with requests.Session() as session:
            for _ in range(3):
                session.get(URL)


def test_a_session_for_each_request_fails_with_the_finding(intact):
    with pytest.raises(AssertionError) as failed:
        with intact.expect("avoidable == 0"):
            for _ in range(4):
                requests.get(URL)
    text = str(failed.value)
    assert "test_a_session_for_each_request_fails_with_the_finding" in text
    assert "avoidable is 3" in text
    place = r"at tests/test_expect\.py:\d+ test_a_session_for_each_request_fails_with_the_finding: "
    assert re.search(place, text), text
    assert "->" in text, text


def test_a_connection_from_before_is_none_of_the_window(intact):
    with requests.Session() as session:
        session.get(URL)
        with intact.expect("connections == 0", "reuse == 100%"):
            session.get(URL)


def test_processes_that_the_test_starts_are_in_the_window(intact):
    script = f"import requests; [requests.get({URL!r}) for _ in range(3)]"
    with pytest.raises(AssertionError, match="connections is 3"):
        with intact.expect("connections == 1"):
            subprocess.run([sys.executable, "-c", script], check=True)


def test_a_window_without_traffic_does_not_pass(intact):
    with pytest.raises(AssertionError, match="was observed in the window"):
        with intact.expect("connections == 0"):
            pass


def test_a_second_window_of_the_process_is_refused(intact):
    with pytest.raises(intact_http.NotWatched, match="is open in process"):
        with intact.expect("connections == 1"):
            with intact.expect("connections == 1"):
                pytest.fail("two windows are open")


def test_a_wrong_requirement_is_refused(intact):
    with pytest.raises(intact_http.NotWatched, match="avoidable"):
        with intact.expect("avoidabel == 0"):
            pytest.fail("the window is open")


def test_a_block_that_raises_is_not_judged(intact):
    with pytest.raises(ZeroDivisionError):
        with intact.expect("connections == 1"):
            1 / 0
    # the window is closed: another one can be opened
    with intact.expect("connections == 1"):
        requests.get(URL)


def test_without_intact_the_remedy_is_named(intact, monkeypatch):
    monkeypatch.delenv("INTACT_CONTROL")
    with pytest.raises(intact_http.NotWatched, match="intact watch --windows"):
        with intact.expect("connections == 1"):
            pytest.fail("no window is open")
