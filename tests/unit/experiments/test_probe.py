"""How long it will take, by what the first image of each setting took."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

import pytest
from crews import network, pictures
from rows import row

import repeat_xai as rx
from repeat_xai.cli.row_progress import filled
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.experiments.making_rows import Work
from repeat_xai.experiments.probe import Cost, cost, first_of
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row_store import Store
from repeat_xai.experiments.worker import Worker

ONE, OTHER = (Setting(dataset=name, method=rx.Relax()) for name in ("one", "other"))


def test_one_image_of_each_setting_comes_first_and_none_twice():
    first, rest = first_of([Work(ONE, [4, 7, 2]), Work(OTHER, [5])])
    assert first == [Work(ONE, [4]), Work(OTHER, [5])]
    assert rest == [Work(ONE, [7, 2])]


def test_each_image_takes_what_the_first_of_its_setting_took():
    probed = [(row("a", seconds=3.0, calls=100), 10), (row("b", seconds=0.5, calls=7), 4)]
    assert cost(probed, at_once=1) == Cost(rows=14, calls=1028, seconds=32.0)
    assert cost(probed, at_once=8).seconds == 4.0


@final
@dataclass
class Slow:
    """Says that each row took 50 s, and makes four at once."""

    worker: Worker
    at_once: int = 4
    asked: list[tuple[str, int]] = field(default_factory=list)

    def rows(self, work):
        for setting, numbers in work:
            for number in numbers:
                self.asked.append((Path(setting.dataset).name, number))
                yield replace(self.worker.failed(setting, number, ""), failure=None, seconds=50.0, calls=1000)


@pytest.fixture
def campaign(worker, tmp_path):
    """Ten images of one dataset, and one of another."""
    base = Setting(dataset="", network=network(tmp_path), method=rx.Relax(), protocol="encoder")
    settings = [replace(base, dataset=pictures(tmp_path / name, count)) for name, count in (("one", 10), ("other", 1))]
    return Campaign(sheets=[], others=settings, images=None, seed=0, store=Store(tmp_path / "rows"), worker=worker)


def test_it_is_said_once_all_settings_are_known_and_nobody_waits_for_that(campaign, capsys):
    slow = Slow(campaign.worker)
    assert filled(campaign, slow) == 0
    assert slow.asked == [("one", 0), ("other", 0), *(("one", number) for number in range(1, 10))]
    assert capsys.readouterr().err.splitlines() == [
        "repeat-xai: 11 of 11 rows to make",
        "repeat-xai: 11 rows, 11,000 encoder calls, about 0:02:18 in all",  # 11 × 50 s by four
    ]


def test_what_is_short_is_not_foretold(campaign, capsys):
    assert filled(campaign, Slow(campaign.worker, at_once=10)) == 0
    assert capsys.readouterr().err == "repeat-xai: 11 of 11 rows to make\n"
