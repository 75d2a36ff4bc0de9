"""The fixture `intact`: windows that have the name of the test."""

import pytest

import intact_http


class Intact:
    """Opens windows for one test."""

    def __init__(self, name):
        self._name = name

    def expect(self, *requirements, fail_on=None):
        """See `intact_http.expect`."""
        return intact_http.expect(*requirements, fail_on=fail_on, name=self._name)


@pytest.fixture
def intact(request):
    """Judges the connections of a part of the test: `with intact.expect("avoidable == 0"):`."""
    return Intact(request.node.nodeid)
