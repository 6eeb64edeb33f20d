"""The examples that a newcomer opens first run as they stand: the notebook, and the pipeline in Beam YAML."""

import base64
import json
import logging
import re
import runpy
import warnings
from io import BytesIO
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

import slackwater

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_notebook_goes_from_a_table_to_a_chart_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "own"))
    notebook = nbformat.read(ROOT / "examples/wards.ipynb", as_version=4)
    assert [cell for cell in notebook.cells if cell.get("outputs")] == []

    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, resources=resources).execute()

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    texts = "".join(output.get("text", "") for output in outputs)
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    assert "59 windows" in texts
    assert slackwater.show(tmp_path / "out/public").table.num_rows == 59 * 3
    (chart,) = (output.data["image/png"] for output in outputs if "image/png" in output.get("data", {}))
    with Image.open(BytesIO(base64.b64decode(chart))) as image:
        assert image.width > 400


@pytest.mark.slow
def test_the_pipeline_in_beam_yaml_publishes_its_rows_and_writes_estimates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    readme = (ROOT / "README.md").read_text()
    (spec,) = re.findall(r"`wards.yaml`:\n\n```yaml\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    (tmp_path / "wards.yaml").write_text(spec)
    example = ROOT / "examples/pipeline.yaml"
    (page,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)
    assert example.read_text().endswith(page)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["main.py", "--runner=FnApiRunner", f"--yaml_pipeline_file={example}"])
    with warnings.catch_warnings(), caplog.at_level(logging.INFO):  # which it sets for its process
        warnings.simplefilter("ignore")  # of libraries that Beam YAML alone imports
        runpy.run_module("apache_beam.yaml.main", run_name="__main__")  # as `python -m` does

    written = [json.loads(line) for path in tmp_path.glob("out/levels-*") for line in path.read_text().splitlines()]
    table = slackwater.show(tmp_path / "releases/wards/public").table
    levels = [row for row in table.to_pylist() if row["kind"] == "level"]
    assert len(levels) == 7 * 3
    told = {(row["window_end"], row["ward"]): row["value"] for row in written}
    assert told == {
        (f"{row['window_end']:%Y-%m-%dT%H:%M:%SZ}", row["ward"]): pytest.approx(row["value"]) for row in levels
    }
