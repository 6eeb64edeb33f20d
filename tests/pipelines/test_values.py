"""Values of the Python API in notebooks."""

from pathlib import Path

import slackwater
import slackwater.local
from pipelines.common.value import Value
from pipelines.compact.operation import Compacted
from tests.releases.continued import unpacked


def test_every_value_of_the_api_is_shown_in_notebooks_by_one_mechanism() -> None:
    names = [(module, name) for module in (slackwater, slackwater.local) for name in module.__all__]
    values = [value for module, name in names if hasattr(value := getattr(module, name), "to_json")]

    assert len(values) > 20
    assert [value.__name__ for value in values if Value not in value.__mro__] == []
    own = {value.__name__ for value in values if "_repr_html_" in vars(value)}
    assert own == {"Answered", "Reported", "Shown"}


def test_a_notebook_shows_tables_and_escaped_text(tmp_path: Path) -> None:
    public = unpacked(Path(__file__).parents[1] / "releases/0.3.0/owners", tmp_path) / "public"

    shown = slackwater.show(public)._repr_html_()
    reported = slackwater.report(public, output=tmp_path / "<a>.html")._repr_html_()
    answered = slackwater.answer(
        public,
        query=slackwater.load(public / "spec.yaml").queries[0].name,
        window="2026-01-05T00:00:00Z",
        minus="2026-01-04T00:00:00Z",
    )._repr_html_()

    assert shown.startswith("<table><tr><th>query</th><th>kind</th><th>window</th>")
    assert "&lt;a&gt;.html</pre><table>" in reported
    assert "is the difference real?" in answered
    assert "<td>level</td><td>the end of 4 January 2026</td>" in answered
    assert Compacted.__mro__[1] is Value
