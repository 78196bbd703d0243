"""Imports what workers need; only the server from which worker processes are forked imports this module.

Ctrl-C reaches all processes of a terminal. The imports take seconds, and an interrupt in the middle of them would show
a traceback of the server. It is ignored here, because the server ends together with the process that has started it.
"""

import signal

handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
import repeat_xai.experiments.executors.processes  # noqa: E402, F401

signal.signal(signal.SIGINT, handler)
