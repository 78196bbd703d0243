"""Calls of a function in a process of its own, whose memory and time are limited."""

import resource
import warnings
from multiprocessing.connection import Connection

from hostile.verdicts import Verdict, verdict_of_call
from stores import forkserver

MAX_BYTES = 6 * 2**30
"""Size of the process's address space in bytes; torch and ONNX Runtime alone take half of it."""
SECONDS = 20.0


def verdict_of_call_in_process(action, *arguments, memory: int = MAX_BYTES, seconds: float = SECONDS) -> Verdict:
    """Return the verdict on a call. A process that dies counts as a traceback, one that does not answer as a hang."""
    receiving, sending = forkserver.Pipe(duplex=False)
    process = forkserver.Process(target=_call, args=(action, arguments, memory, seconds, sending), daemon=True)
    process.start()
    sending.close()
    try:
        return receiving.recv() if receiving.poll(2 * seconds) else Verdict("hang")
    except EOFError:
        process.join()
        return Verdict("traceback", f"its process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()


def _call(action, arguments, memory: int, seconds: float, sending: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    sending.send(verdict_of_call(lambda: action(*arguments), seconds=seconds))
