"""Rows made up, for tables whose numbers are known beforehand."""

from repeat_xai.experiments.store.row import Row


def row(key: str = "0", **changes) -> Row:
    plain = {
        "dataset": "known",
        "image": key,
        "encoder": "e",
        "method": "m",
        "measure": "Maps",
        "seed": 0,
        "setting": "",
    }
    return Row(key=key, **plain | changes)


def found(sets):
    """By dataset, whether randomised, and seed: lists of scores an image, None for one that failed."""

    def rows(setting):
        key = (setting.dataset, setting.network.randomise is not None, setting.seed)
        return [None if scores is None else row(str(n), scores=scores) for n, scores in enumerate(sets[key])]

    return rows
