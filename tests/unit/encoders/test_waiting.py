"""Waits for calls and locks: each is given up when a check says so, or when Ctrl-C is pressed."""

import signal
import threading
import time

import pytest
from serving import until

from repeat_xai.encoders import waiting
from repeat_xai.encoders.waiting import AbandonableThread, call_on_thread, checking, holding


class GaveUpError(BaseException):
    """Not an Exception, as the cancellation of a job."""


def give_up():
    raise GaveUpError


def test_a_call_on_a_thread_returns_its_result_or_raises_its_error():
    assert call_on_thread(lambda: threading.current_thread() is not threading.main_thread())
    with pytest.raises(TimeoutError, match="of the call"):
        call_on_thread(lambda: (_ for _ in ()).throw(TimeoutError("of the call")))


def test_a_check_is_made_while_a_call_goes_on_and_not_after_the_block(monkeypatch):
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.01)
    checks = []
    with checking(lambda: checks.append(1)):
        call_on_thread(lambda: time.sleep(0.2))
    assert len(checks) > 1
    del checks[:]
    call_on_thread(lambda: time.sleep(0.1))
    assert checks == []


def test_a_call_that_is_given_up_is_ended(monkeypatch):
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.01)
    ended, events = threading.Event(), []
    with checking(give_up), pytest.raises(GaveUpError):
        call_on_thread(lambda: (ended.wait(), events.append("call is over")), end=ended.set)
    assert events == ["call is over"]


def test_a_call_that_does_not_end_is_left_behind(monkeypatch):
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(waiting, "END_SECONDS", 0.05)
    ended = threading.Event()
    with checking(give_up), pytest.raises(GaveUpError):
        call_on_thread(ended.wait, end=lambda: None)
    assert [thread.daemon for thread in threading.enumerate() if isinstance(thread, AbandonableThread)] == [True]
    ended.set()
    assert until(lambda: not any(isinstance(thread, AbandonableThread) for thread in threading.enumerate()))


def test_ctrl_c_ends_a_call():
    """Until a call of native code returns, Python runs no handler of a signal on the thread that made the call."""
    ended, events = threading.Event(), []

    def call():
        time.sleep(0.3)
        signal.raise_signal(signal.SIGINT)
        events.append("ended" if ended.wait(60) else "left alone")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            call_on_thread(call, end=ended.set)
    finally:
        signal.signal(signal.SIGINT, before)
    assert events == ["ended"]


def test_the_wait_for_a_lock_can_be_given_up(monkeypatch):
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.01)
    lock, held, released = threading.RLock(), threading.Event(), threading.Event()

    def hold():
        with holding(lock):
            held.set()
            released.wait()

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    with checking(give_up), pytest.raises(GaveUpError), holding(lock):
        pytest.fail("two threads hold the lock")
    released.set()
    other.join()
    with checking(give_up), holding(lock):
        pass
