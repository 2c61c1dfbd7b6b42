"""`Artoo.run(returns=…)`, which gives a task the JSON schema of a type and converts its result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from artoo.contracts.criteria import Assurance
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.findings import Unformed
from artoo.runtime.changes.run_changes import RunResult

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """The result of `Artoo.run(text, returns=…)`, with the value and the whole result.

    `value` is None if the task was abandoned or its answer did not fit the type. `result.facts` contains the
    reason, and names the parts of the value that a model filled in. `result.assurance` says how reliable the value
    is.
    """

    value: T | None
    result: RunResult


class Form(Generic[T]):
    """A type that Pydantic can build from JSON (such as a model, a dataclass, a TypedDict or `list[int]`), with its
    schema."""

    def __init__(self, wanted: type[T]) -> None:
        """Create the schema. Raises ConfigurationError for a type without a JSON schema."""
        try:
            self._adapter = TypeAdapter(wanted)
            self.schema: dict[str, object] = self._adapter.json_schema()
        except PydanticUserError as error:
            reason = str(error.message).partition("\n")[0]
            raise ConfigurationError(
                f"returns={wanted!r} cannot be written as a JSON schema: {reason} "
                "Use a Pydantic model, a dataclass or plain types"
            ) from error

    def of(self, result: RunResult) -> Returned[T]:
        """Return the result with its value converted to the type."""
        # A validator of the type may reject the value. Then the result has no value, and a fact gives the reason.
        if result.value is None:
            return Returned(None, result)
        try:
            return Returned(self._adapter.validate_json(json.dumps(result.value)), result)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, problem["loc"])) or "the value"
            refused = Unformed(problem=f"{where}: {problem['msg']}")
            changed = {"value": None, "facts": (*result.facts, refused), "assurance": Assurance.UNVERIFIED}
            return Returned(None, result.model_copy(update=changed))
