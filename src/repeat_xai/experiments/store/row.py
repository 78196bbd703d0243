"""What is kept of one image under one setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from repeat_xai.errors import ConfigurationError
from repeat_xai.seeds import SEEDS


@final
@dataclass(frozen=True, kw_only=True)
class Row:
    """Numbers, and what made them."""

    key: str
    """Names the image and the whole setting: two rows of one key say the same."""
    dataset: str
    image: str
    encoder: str
    method: str
    measure: str
    seed: int
    scores: Mapping[str, float] = field(default_factory=dict)
    """Undefined ones are NaN."""
    code: tuple[float, ...] = ()
    calls: int = 0
    seconds: float = 0.0
    failure: str | None = None
    """Why there are no numbers."""
    setting: str
    """In full, as JSON."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < SEEDS:
            raise ConfigurationError(f"a row keeps seeds from 0 to 2⁶⁴ − 1, not {self.seed}")
