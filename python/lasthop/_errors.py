"""What can go wrong: `LasthopError`. Too little memory is `MemoryError`, and a file that cannot be read `OSError`, as everywhere."""

from __future__ import annotations


class LasthopError(Exception):
    """What is wrong is in the arguments, in a file, or in a policy: all errors of this package but those of the system."""


class ArgumentError(LasthopError, ValueError, TypeError):
    """An argument has a wrong type or value. The message names it and what is accepted.

    >>> import lasthop
    >>> lasthop.simulate({"hosts": [{}]}, seed=-1)
    Traceback (most recent call last):
        ...
    lasthop.ArgumentError: seed=-1; accepted: a whole number from 0 to 9223372036854775807
    """


class ColumnError(ArgumentError, KeyError):
    """A table has no such column. The message has those that there are."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingFileError(LasthopError, FileNotFoundError):
    """There is no such file, study or folder."""


class ScenarioError(LasthopError, ValueError):
    """A scenario or a study cannot be run as written. The message is the command's.

    Attributes:
        file: The file, or the name of a scenario that is none; `None` if a value given beside it is wrong.
        line: The line of the key in the file, from 1; `None` without one.
        key: The key, such as `hosts[0].policy`; `None` if the whole is wrong.
        accepted: What the key takes, in words.
        did_you_mean: The word probably meant.

    >>> import lasthop
    >>> try:
    ...     lasthop.Scenario({"hosts": [{"policy": "formul"}]})
    ... except lasthop.ScenarioError as error:
    ...     print(error.key, error.did_you_mean)
    hosts[0].policy "formula"
    """

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
        accepted: str | None = None,
        did_you_mean: str | None = None,
    ) -> None:
        super().__init__(message, file, line, key, accepted, did_you_mean)
        self.file = file
        self.line = line
        self.key = key
        self.accepted = accepted
        self.did_you_mean = did_you_mean

    def __str__(self) -> str:
        return str(self.args[0])


class PolicyError(LasthopError, RuntimeError):
    """The policy of a host did not decide, and the run ended. Its `__cause__` is what a policy in Python raised.

    Attributes:
        host: The number of the host, from 0.
        tick: The number of the tick, from 0; `None` if the policy could not be made.
        at_s: When that was, in seconds of the run; `None` if the policy could not be made.

    >>> import lasthop
    >>> class Mine:
    ...     def __init__(self, hello): ...
    ...     def decide(self, observation):
    ...         return {"flows": [{"id": 7, "max_segments": 20}]}
    >>> try:
    ...     lasthop.simulate({"duration_s": 5, "warmup_s": 1, "hosts": [{}]}, policy=Mine)
    ... except lasthop.PolicyError as error:
    ...     print(error.host, error.tick, error)
    0 0 the policy of host 0 (...Mine) failed at tick 0, ...: flows[0].id: 7 is no connection of the observation
    """

    def __init__(self, message: str, host: int, tick: int | None = None, at_s: float | None = None) -> None:
        super().__init__(message, host, tick, at_s)
        self.host = host
        self.tick = tick
        self.at_s = at_s

    def __str__(self) -> str:
        return str(self.args[0])


class KernelError(LasthopError, RuntimeError):
    """Kernel hosts cannot run here: no command, no emulator, no such kernel. The message is the command's."""


class ResultError(LasthopError, ValueError):
    """A folder of results cannot be used: no result, damaged, or written by another version of the format."""


class ScenarioWarning(UserWarning):
    """A scenario can be run, but may not mean what it says: keys without effect, a warm-up that is too short."""
