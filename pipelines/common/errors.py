"""The error about a wrong argument of a command."""

from collections.abc import Iterable, Mapping

from transforms.common.errors import SpecError


class ArgumentError(SpecError):
    """An argument is wrong. Its message begins with the parameter's name, or with the flag on the command line.

    Attributes:
        problems: For each problem the parameter and the text that follows its name.
    """

    def __init__(self, parameter: str, message: str, value: object = None) -> None:
        self._set([(parameter, f": {message}" if value is None else f" {value}: {message}")])

    @classmethod
    def of_problems(cls, problems: Iterable[tuple[str, str]]) -> "ArgumentError":
        """Return one error with several problems; a problem without a parameter has an empty name."""
        made = cls.__new__(cls)
        made._set([*problems])
        return made

    def _set(self, problems: list[tuple[str, str]]) -> None:
        self.problems = problems
        super().__init__(self.named({}))

    def named(self, flags: Mapping[str, str]) -> str:
        """Return the message with flags in place of parameters."""
        return "\n".join(f"{flags.get(parameter, parameter)}{text}" for parameter, text in self.problems)
