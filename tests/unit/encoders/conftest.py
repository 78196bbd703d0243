"""Models of transformers in folders, as `save_pretrained` writes them."""

import pytest
import torch
from tiny_models import models


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a function that gives the folder of a kind of model, which is written when it is first needed."""
    root, kinds = tmp_path_factory.mktemp("hub"), models()

    def folder_of(kind):
        if not (root / kind).exists():
            model, processor = kinds[kind]
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                network = model()
            for tensor in network.parameters():  # so that no position embedding stays zero
                tensor.data += 0.02 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(2))
            network.save_pretrained(root / kind)
            processor.save_pretrained(root / kind)
        return root / kind

    return folder_of
