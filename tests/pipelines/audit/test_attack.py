"""A layer of the audit is one entry of one table."""

import json
from pathlib import Path

import pytest

from pipelines.audit.attack import LAYERS, RESULT, Attack, main
from pipelines.audit.findings import LayerResult
from tests.audit.seeded import SPECS


def test_a_layer_in_the_table_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def toy(attack: Attack) -> list[LayerResult]:
        return [
            LayerResult(name="toy", question="Are there queries?", tried={"queries": len(attack.ready.spec.queries)})
        ]

    monkeypatch.setitem(LAYERS, "toy", toy)
    main([str(SPECS / "wards.yaml"), str(tmp_path), "seeded", "toy"])

    (layer,) = json.loads((tmp_path / RESULT).read_text())["layers"]
    assert (layer["layer"], layer["tried"], layer["passed"]) == ("toy", {"queries": 1}, True)
