"""What the process that loads an encoder may do in place of loading it: these can be found from another process."""

import os
import threading

from repeat_xai.app import encoder_process as loading
from repeat_xai.encoders import weights


def endless(network, sending):
    threading.Event().wait()


def unwrapping_for_ever(network, sending):
    """Load weights that contain themselves as if nothing kept that from going on for ever."""

    def unwrapped(path, content):
        while True:
            content = content["state_dict"]

    weights._unwrapped = unwrapped
    loading._load(network, sending)


def killed(network, sending):
    os.kill(os.getpid(), 9)
