"""Replacements for the loading of an encoder, at the top of a module so that another process can import them."""

import os
import threading

from repeat_xai.app import encoder_process
from repeat_xai.encoders import weights


def endless(network, sending):
    threading.Event().wait()


def unwrapping_for_ever(network, sending):
    """Load weights that contain themselves, without the limit that keeps this from going on for ever."""

    def unwrapped(path, content):
        while True:
            content = content["state_dict"]

    weights._unwrapped = unwrapped
    encoder_process._load(network, sending)


def killed(network, sending):
    os.kill(os.getpid(), 9)
