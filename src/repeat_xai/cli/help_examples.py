"""What stands below `--help`: commands to copy, each of them run by a test, and what the exit status means."""

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
    "demo": ("repeat-xai demo", "repeat-xai demo --out elsewhere --seed 1"),
    "screen": (
        "repeat-xai screen photos/ --out screened",
        "repeat-xai screen photos/ --reference known/ --out compared",
    ),
    "evaluate": (
        "repeat-xai evaluate --dataset photos --images 20 --estimator fast --out results",
        "repeat-xai evaluate --dataset voc --against eurosat --metrics complexity,ood --data-root DATA --out told",
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
"""Command → examples; without a name, of all of them."""
STATUS = (
    "Exit status: 0, all done; 1, something was bad and is named, the rest is done;",
    "2, wrong usage; 130, interrupted.",
)
