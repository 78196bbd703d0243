"""Images of coloured squares, and an encoder that sees nothing but how much there is of each colour."""

import torch
from torch import nn

import repeat_xai as rx

CELLS, SIDE = 4, 6
"""Squares along each side of an image, and pixels along each side of a square."""
SHARED, PRIVATE = 5, 11
"""Colours that both images have, and colours that one of them has."""
SEPARATED = 0.95
"""Cosine above which two colours count as the same one."""


def colours(count):
    """Return directions in the space of colours, far from each other: points on a Fibonacci sphere."""
    number = torch.arange(count, dtype=torch.float64) + 0.5
    height, turn = 1 - 2 * number / count, number * torch.pi * (1 + 5**0.5)
    radius = (1 - height**2).sqrt()
    return torch.stack((radius * turn.cos(), radius * turn.sin(), height), 1)


COLOURS = colours(SHARED + 2 * PRIVATE)


class ColourAmounts(nn.Module):
    """The code holds for each colour how much of it is seen; `power` 1 makes it linear in the masks."""

    def __init__(self, power=1.0):
        super().__init__()
        self.power = power
        self.register_buffer("colours", COLOURS)

    def forward(self, images):
        pixels = images.flatten(2).transpose(1, 2)
        amounts = pixels.norm(dim=2)
        same = pixels @ self.colours.T > SEPARATED * amounts[..., None]
        return (amounts[..., None] * same).sum(1) ** self.power


def planted_encoder(power=1.0):
    return rx.load_encoder(ColourAmounts(power).double().eval())


def planted_images(encoder, seed=0):
    """Return two images, and for each of the squares of the first that has a partner, its place and its partner's."""
    generator = torch.Generator().manual_seed(seed)
    places = [torch.randperm(CELLS**2, generator=generator) for _ in range(2)]
    images = []
    for number, place in enumerate(places):
        private = torch.arange(PRIVATE) + SHARED + PRIVATE * number
        squares = torch.zeros(CELLS**2, 3, dtype=torch.float64)
        squares[place] = COLOURS[torch.cat((torch.arange(SHARED), private))]
        grid = squares.T.view(3, CELLS, CELLS).repeat_interleave(SIDE, 1).repeat_interleave(SIDE, 2)
        images.append(rx.load_image(grid, encoder))
    cells = [[divmod(index, CELLS) for index in place[:SHARED].tolist()] for place in places]
    return *images, set(zip(*cells, strict=True))
