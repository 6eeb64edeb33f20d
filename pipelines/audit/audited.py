"""The result of an audit, as a value, as text and as a page."""

from dataclasses import dataclass, field
from typing import Any

from pipelines.audit.findings import LayerResult
from pipelines.common.value import Value
from pipelines.pages.html import bullets, page, paragraph, section, table

UNTESTED = (
    "A delta: an event of probability 1e-9 does not occur in any feasible number of trials.",
    "Neighbours that the search did not find: an audit can refute a claim, and cannot prove it.",
    "Time, memory and network traffic of a run, and everything on the private side.",
)
"""Limits of every audit of this program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited(Value):
    """Result of an audit.

    Attributes:
        subject: What was audited: the release of a spec, or a public folder.
        claim: The claim in words.
        epsilon, delta: The claim in numbers.
        layers: Results of the layers.
        seconds: Processor time, in seconds.
        page: The page that was written.
    """

    subject: str
    claim: str
    epsilon: float
    delta: float
    layers: tuple[LayerResult, ...] = field(repr=False)
    seconds: float
    page: str | None = None

    @property
    def passed(self) -> bool:
        """Whether no layer contradicts the claim."""
        return all(layer.passed for layer in self.layers)

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 if a layer contradicts the claim."""
        return 0 if self.passed else 1

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if self.passed:
            return "No layer contradicts the claim."
        wrong = ", ".join(layer.name for layer in self.layers if not layer.passed)
        return f"THE CLAIM IS CONTRADICTED by: {wrong}. Do not publish; report it as SECURITY.md says."

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater audit --json`."""
        return {
            "subject": self.subject,
            "claim": self.claim,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "passed": self.passed,
            "layers": [layer.to_json() for layer in self.layers],
            "untested": [*UNTESTED],
            "seconds": round(self.seconds, 1),
        }

    def text(self) -> str:
        """Return the text that `slackwater audit` prints."""
        lines = [f"{self.subject}: {self.verdict}", self.claim, ""]
        for layer in self.layers:
            lines.append(f"{'passed' if layer.passed else 'FAILED'}  {layer.name}: {layer.question}")
            lines += [f"        tried {_counts(layer)}"] if layer.tried else []
            lines += [f"        {text}" for text in layer.found]
            lines += [f"        FAULT: {text}" for text in layer.faults]
            lines += [f"        not tested: {text}" for text in layer.untested]
        lines += ["", "Not tested by any layer:", *(f"  {text}" for text in UNTESTED)]
        lines.append(f"{self.seconds:.0f} s of processor time")
        return "\n".join([*lines, *([] if self.page is None else [f"As a page: {self.page}"])])


def audit_page(audited: Audited) -> str:
    """Return an audit as one page of HTML."""
    rows = [
        ("passed" if layer.passed else "FAILED", layer.name, layer.question, _counts(layer)) for layer in audited.layers
    ]
    details = [
        section(
            f"layer{number}",
            layer.name.capitalize(),
            [
                bullets(
                    [
                        *layer.found,
                        *(f"FAULT: {f}" for f in layer.faults),
                        *(f"Not tested: {u}" for u in layer.untested),
                    ]
                )
            ],
        )
        for number, layer in enumerate(audited.layers)
    ]
    return page(
        f"Audit of {audited.subject}",
        [
            section("claim", f"Audit of {audited.subject}", [paragraph(audited.verdict), paragraph(audited.claim)]),
            section("layers", "Layers", [table("Layers", ("result", "layer", "question", "tried"), rows, words=4)]),
            *details,
            section("untested", "Not tested by any layer", [bullets(UNTESTED)]),
        ],
    )


def _counts(layer: LayerResult) -> str:
    text = "; ".join(f"{name} {number:,}" for name, number in layer.tried.items()) or "-"
    return text.replace("; of these: ", ": ", 1).replace("; of these: ", ", ")
