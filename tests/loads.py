"""What the process that loads an encoder may do in place of loading it: these can be found from another process."""

import os
import threading


def endless(network, sending):
    threading.Event().wait()


def killed(network, sending):
    os.kill(os.getpid(), 9)
