"""The text below `--help`: examples, each of which is run by a test, and the meaning of the exit status."""

EXAMPLES = {
    "": (
        "repeat-xai demo",
        "repeat-xai explain cat.jpg photos/ --out results",
        "repeat-xai list methods",
    ),
    "explain": (
        "repeat-xai explain cat.jpg photos/ --out results",
        "repeat-xai explain cat.jpg --out exact --estimator exact --masks 1000 --repeats 10",
        "repeat-xai explain cat.jpg --out compared --method saliency,relax,repeat",
    ),
    "match": (
        "repeat-xai match cat.jpg query.jpg --out matched",
        "repeat-xai match cat.jpg query.jpg --out finer --budget 1024 --level 0.99",
    ),
    "demo": ("repeat-xai demo", "repeat-xai demo --out elsewhere --seed 1"),
    "screen": (
        "repeat-xai screen photos/ --out screened",
        "repeat-xai screen photos/ --known known/ --out compared",
    ),
    "evaluate": (
        "repeat-xai evaluate --dataset photos --images 20 --estimator fast --out results",
        "repeat-xai evaluate --dataset voc --against eurosat --metrics complexity,ood --data-root DATA --out detected",
    ),
    "serve": (
        "repeat-xai serve",
        "repeat-xai serve --encoder torchvision:resnet50 --port 8000 --no-browser",
    ),
    "reproduce": (
        "repeat-xai reproduce list",
        "repeat-xai reproduce thresholds --images 24 --data-root DATA --out reproduced",
    ),
    "list": ("repeat-xai list encoders", "repeat-xai list methods"),
}
"""Examples by command; those of the command itself have an empty name."""
STATUS = (
    "Exit status: 0, everything is done; 1, something failed and is named, and the rest is done;",
    "2, wrong usage; 130, interrupted.",
)
