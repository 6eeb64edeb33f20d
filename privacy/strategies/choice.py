"""What a spec can say of strategies: their names and settings. The one list of these words."""

from dataclasses import asdict, dataclass
from typing import Literal, get_args

from privacy.exact import Json, Members

Name = Literal["auto", "disjoint", "sliding", "tree", "factorised", "direct"]
Refine = Literal["none", "subtraction", "bottom_up", "least_squares"]
Form = Literal["square_root", "leaky", "window", "arma"]

NAMES: tuple[Name, ...] = get_args(Name)
REFINES: tuple[Refine, ...] = get_args(Refine)
FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the spec says of the strategy; None is left to the planner.

    Attributes:
        branching, height, refine: of a tree.
        form: of a Toeplitz factorisation.
    """

    name: Name = "auto"
    branching: int | None = None
    height: int | None = None
    refine: Refine | None = None
    form: Form | None = None

    def to_json(self) -> Json:
        """As a document."""
        return asdict(self)

    @staticmethod
    def from_json(members: Members) -> "Choice":
        """The choice of a document."""
        return Choice(
            name=members.word("name", NAMES),
            branching=members.optional_count("branching"),
            height=members.optional_count("height"),
            refine=members.optional_word("refine", REFINES),
            form=members.optional_word("form", FORMS),
        )
