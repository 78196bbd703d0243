"""Numbers of many images → histograms and curves."""

from __future__ import annotations

from matplotlib.figure import Figure

from repeat_xai.budget import SimilarityRange


def similarities(measured: SimilarityRange) -> Figure:
    """Histogram of similarities between images and their masked copies: the paper's appendix figure 1."""
    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(measured.similarities.flatten().numpy(), bins=100, color="#0072B2")
    for value, name in ((measured.low, "least"), (measured.high, "most")):
        axes.axvline(value, color="#D55E00", linewidth=1)
        axes.annotate(
            f"{name} {value:.3f}",
            (value, 0.98),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            rotation=90,
            va="top",
            fontsize=8,
        )
    images, masks = measured.similarities.shape
    axes.set(xlabel="similarity  s(h, h̄)", ylabel="masks", title=f"{images} images × {masks} masks")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
