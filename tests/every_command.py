"""All commands imported, for processes that are forked from one that has what they need."""

from argparse import Namespace
from itertools import product

from pipelines.cli import _parser
from pipelines.commands import imported

(_commands,) = (action.choices for action in _parser()._actions if isinstance(action.choices, dict))
for _name, _one in product(_commands, (None, "")):
    imported(
        Namespace(
            command=_name, local="plan" if _one is None else "estimate", html=_one, new_release=_one, compare=_one
        )
    )
imported(Namespace(command="local", local="report"))
