"""Pages of five releases of different kinds, from synthetic changelogs: `make gallery`, or with names of specs.

Each spec of this folder is simulated, published and reported into out/gallery. A release that exists is reported again.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import slackwater

OUT = Path("out/gallery")
SPECS = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Public rates of the synthetic changelog of a spec.

    Attributes:
        arrivals: Mean number of entries that arrive in a window.
        stay: Mean length of stay.
        burstiness: Variance of the activity of windows.
    """

    arrivals: float
    stay: timedelta
    burstiness: float = 0.0


EXAMPLES = {
    "wards": Example(arrivals=400, stay=timedelta(days=6), burstiness=0.1),
    "ages": Example(arrivals=150, stay=timedelta(weeks=30)),
    "bikes": Example(arrivals=4000, stay=timedelta(weeks=3)),
    "rents": Example(arrivals=400, stay=timedelta(days=700)),
    "sessions": Example(arrivals=300, stay=timedelta(hours=6), burstiness=0.5),
}


def build(name: str, folder: Path) -> Path:
    """Return the page of one example, which is made in a folder.

    Args:
        name: Name of the spec.
        folder: Folder of all pages.
    """
    example, made = EXAMPLES[name], folder / name
    if not made.exists():
        slackwater.simulate(
            SPECS / f"{name}.yaml",
            made,
            arrivals=example.arrivals,
            stay=example.stay,
            burstiness=example.burstiness,
            seed=7,
        )
    slackwater.run(made / "spec.yaml")
    page = folder / f"{name}.html"
    slackwater.report(made / "spec.yaml", output=page)
    return page


def main(names: Sequence[str]) -> None:
    """Make the pages of these examples; without names, of all."""
    for name in names or EXAMPLES:
        print(build(name, OUT))


if __name__ == "__main__":
    main(sys.argv[1:])
