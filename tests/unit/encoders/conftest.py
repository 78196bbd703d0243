"""Models as their makers save them."""

import pytest
import torch
from tiny_models import models


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Kind → a folder as `save_pretrained` leaves it, made once."""
    root, known = tmp_path_factory.mktemp("hub"), models()

    def made(kind):
        if not (root / kind).exists():
            model, processor = known[kind]
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                network = model()
            for tensor in network.parameters():  # so that no table of positions is left at zero
                tensor.data += 0.02 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(2))
            network.save_pretrained(root / kind)
            processor.save_pretrained(root / kind)
        return root / kind

    return made
