"""Names of the kinds of published numbers."""

from typing import Any

from pipelines.spec.durations import duration_text, length_text
from privacy.planning.plan import Plan
from privacy.series import Series


def series_document(series: Series, plan: Plan) -> dict[str, Any]:
    """Return the kind of numbers and, for sliding windows, their width and step."""
    if series.kind != "sliding":
        return {"kind": series.kind}
    return {
        "kind": series.kind,
        "width": duration_text(series.width * plan.promise.window),
        "every": duration_text(series.every * plan.promise.window),
    }


def series_label(series: Series, plan: Plan) -> str:
    """Return the kind of numbers as people read it, such as `level` or `sliding over 7 days, every 1 day`."""
    if series.kind != "sliding":
        return series.kind
    width, every = (length_text(each * plan.promise.window) for each in (series.width, series.every))
    return f"sliding over {width}" + ("" if width == every else f", every {every}")


def series_text(number: dict[str, Any]) -> str:
    """Return the kind, the width and step of sliding windows, and the name of marginals, as text.

    >>> series_text({"kind": "sliding", "width": "7d", "every": "1d"})
    'sliding 7d/1d'
    >>> series_text({"kind": "level_marginal", "marginal": "by region"})
    'level_marginal by region'
    """
    text = f"{number['kind']} {number['width']}/{number['every']}" if "width" in number else str(number["kind"])
    return f"{text} {number['marginal']}" if "marginal" in number else text
