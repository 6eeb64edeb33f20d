"""Arguments of an audit, and its result as text and as a page."""

import pytest

import slackwater
from pipelines.audit.audited import Audited, audit_page
from pipelines.audit.findings import LayerResult
from pipelines.audit.operation import _attacked
from pipelines.common.errors import ArgumentError
from tests.audit.seeded import SPECS

SPEC = "templates/specs/wards.yaml"


def result(*faults: str) -> Audited:
    layer = LayerResult(name="noise", question="Is it <wide>?", tried={"samples": 12000}, faults=faults)
    return Audited(subject="release wards", claim="(1, 0)-DP.", epsilon=1.0, delta=0.0, layers=(layer,), seconds=1.2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "public: give either a spec or --public"),
        ({"spec": SPEC, "public": "out"}, "public: give either a spec or --public"),
        ({"spec": SPEC, "quick": True, "full": True}, "full: does not go with --quick"),
        ({"public": "out", "quick": True}, "quick: is for the audit of a spec"),
        ({"spec": SPEC, "empty": "ward = 'a'"}, "empty: is for --public"),
        ({"spec": SPEC, "witness": "lines"}, "witness: is for --public"),
        ({"spec": SPEC, "html": "page.txt"}, "the name must end in .html"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        slackwater.audit(**arguments)


def test_a_fault_contradicts_the_claim_in_text_page_and_exit_code():
    failed = result("scale is off by 0.5")

    assert (failed.passed, failed.exit_code, result().exit_code) == (False, 1, 0)
    assert "THE CLAIM IS CONTRADICTED by: noise" in failed.text()
    assert "FAULT: scale is off by 0.5" in failed.text()
    assert "FAULT: scale is off by 0.5" in audit_page(failed)
    assert "Is it &lt;wide&gt;?" in audit_page(failed)
    assert "samples 12,000" in result().text()


def test_a_layer_is_read_back_from_json():
    (layer,) = result("a").layers

    assert LayerResult.from_json(layer.to_json()) == layer


@pytest.mark.slow
def test_a_release_of_one_window_is_audited(tmp_path):
    spec = tmp_path / "one.yaml"
    spec.write_text((SPECS / "wards.yaml").read_text().replace("until: 2026-02-01", "until: 2026-01-02"))

    (noise,) = _attacked(str(spec), "seeded", ["noise"]).layers

    assert noise.passed
    assert noise.tried["streams compared"] > 0
