"""Call a function in a process of its own, with little memory and time: what takes more dies there, and not here."""

import resource
import warnings
from multiprocessing.connection import Connection

from hostile.verdicts import Verdict, called
from stores import forkserver

MOST_MEMORY = 6 * 2**30
"""Bytes of addresses; torch and ONNX Runtime alone take half of it."""
SECONDS = 20.0


def called_apart(action, *arguments, memory: int = MOST_MEMORY, seconds: float = SECONDS) -> Verdict:
    """The verdict on the call; a process that dies is a traceback, one that does not answer a hang."""
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
    sending.send(called(lambda: action(*arguments), seconds=seconds))
