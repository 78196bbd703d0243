"""Tests of the estimated duration of a run, which follows from the first image of each setting."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

import pytest
from small_work import network, pictures
from stores import row

import repeat_xai as rx
from repeat_xai.cli.row_progress import make_rows_with_progress
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.experiments.executors.executor import Work
from repeat_xai.experiments.making_rows import EstimatedCost, estimate_cost, split_first_images
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.worker import Worker

ONE, OTHER = (Setting(dataset=name, method=rx.Relax()) for name in ("one", "other"))


def test_the_first_images_of_all_settings_come_first_and_no_image_twice():
    first, rest = split_first_images([Work(ONE, [4, 7, 2]), Work(OTHER, [5])])
    assert first == [Work(ONE, [4]), Work(OTHER, [5])]
    assert rest == [Work(ONE, [7, 2])]


def test_each_image_costs_what_the_first_of_its_setting_cost():
    probed = [(row("a", seconds=3.0, calls=100), 10), (row("b", seconds=0.5, calls=7), 4)]
    assert estimate_cost(probed, concurrency=1) == EstimatedCost(rows=14, calls=1028, seconds=32.0)
    assert estimate_cost(probed, concurrency=8).seconds == 4.0


@final
@dataclass
class Slow:
    """An executor that makes four rows at a time, and says that each took 50 s."""

    worker: Worker
    concurrency: int = 4
    received: list[tuple[str, int]] = field(default_factory=list)

    def rows(self, work):
        for setting, numbers in work:
            for number in numbers:
                self.received.append((Path(setting.dataset).name, number))
                yield replace(self.worker.failed_row(setting, number, ""), failure=None, seconds=50.0, calls=1000)

    def close(self):
        pass


@pytest.fixture
def campaign(worker, tmp_path):
    """Ten images of one dataset, and one of another."""
    base = Setting(dataset="", encoder_spec=network(tmp_path), method=rx.Relax(), protocol="encoder")
    settings = [replace(base, dataset=pictures(tmp_path / name, count)) for name, count in (("one", 10), ("other", 1))]
    return Campaign(
        sheets=[], extra_settings=settings, images=None, seed=0, store=RowStore(tmp_path / "rows"), worker=worker
    )


def test_the_duration_is_reported_after_the_first_image_of_every_setting(campaign, capsys):
    slow = Slow(campaign.worker)
    assert make_rows_with_progress(campaign, slow) == 0
    assert slow.received == [("one", 0), ("other", 0), *(("one", number) for number in range(1, 10))]
    assert capsys.readouterr().err.splitlines() == [
        "repeat-xai: 11 of 11 rows to make",
        "repeat-xai: 11 rows, 11,000 encoder calls, about 0:02:18 in all",  # 11 × 50 s by four
    ]


def test_a_short_duration_is_not_reported(campaign, capsys):
    assert make_rows_with_progress(campaign, Slow(campaign.worker, concurrency=10)) == 0
    assert capsys.readouterr().err == "repeat-xai: 11 of 11 rows to make\n"
