"""A made-up table and a made-up figure for tests of pages."""

from matplotlib.figure import Figure

from repeat_xai.experiments.columns import UNDEFINED
from repeat_xai.experiments.table import Cell, Table
from repeat_xai.metrics import Summary
from repeat_xai.output.page import NamedTable
from repeat_xai.output.results_folder import write_figure_files


def run_of(folder):
    """Return the table, and the figure, which is drawn in the folder."""

    def cell(mean, printed=None):
        return Cell(Summary(mean, 0.2, mean - 0.1, mean + 0.3, 9, 0), None, printed)

    table = Table(
        title="How deep, how broad",
        notes=("9 images",),
        columns=("depth (I)", "breadth (U)"),
        better=("higher", "lower"),
        lines={("net", "one"): (cell(1.0), cell(2.0, printed=2.1)), ("net", "two"): (cell(3.0), Cell(UNDEFINED))},
    )
    figure = Figure(figsize=(4, 3))
    figure.add_subplot().plot([0, 1], [1, 0])
    return [NamedTable("depths", table)], [write_figure_files(figure, folder / "curve.png", title="A curve, net")]
