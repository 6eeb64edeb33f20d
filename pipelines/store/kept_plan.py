"""The committed and published plan, `plan.json`, with the release's name and the digest of its spec."""

import json
import re
from dataclasses import dataclass

from privacy.json_values import parsed
from privacy.planning.document import plan_from_json, plan_to_json
from privacy.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan, and the release that it was made for.

    Attributes:
        release: name of the release.
        spec_sha256: digest of the release's spec.
    """

    release: str
    spec_sha256: str
    plan: Plan

    def to_text(self) -> str:
        """The content of `plan.json`; lists of numbers are on one line.

        Raises:
            ValueError: the plan cannot be read back from its document.
        """
        document = plan_to_json(self.plan)
        head = {"version": document.pop("version"), "release": self.release, "spec_sha256": self.spec_sha256}
        # This cannot match inside a text, where a line's end is escaped.
        lists = re.compile(r"\[\n\s*(-?\d+(?:,\n\s*-?\d+)*)\n\s*\]")
        text = json.dumps({**head, **document}, indent=1)
        return lists.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"


def read_plan(content: str | bytes) -> KeptPlan:
    """The plan in the content of `plan.json`.

    Raises:
        ValueError: the content is not what `KeptPlan.to_text` gives; the message names the member.
    """
    document = parsed(content)
    if not isinstance(document, dict):
        raise ValueError("the whole: expected an object")
    for key in ("release", "spec_sha256"):
        if not isinstance(document.get(key), str):
            raise ValueError(f"{key}: {'expected text' if key in document else 'missing'}")
    return KeptPlan(document.pop("release"), document.pop("spec_sha256"), plan_from_json(document))
