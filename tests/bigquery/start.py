"""Start the BigQuery emulator with the Python of its separate environment; takes the arguments of `bqemulator start`.

The emulator's uploads give each job a new id. BigQuery takes the id that the client sends, and answers 409 if it knows
the id. This module makes the uploads do the same, since a release relies on it to load each epoch once.
"""

import sys
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

_SENT = "sent_id"


def take_ids_as_sent() -> None:
    from bqemulator.api.routes import upload  # type: ignore[import-not-found]
    from bqemulator.domain.errors import ResourceRef, resource_already_exists  # type: ignore[import-not-found]

    configuration_of, run_load, new_id = upload._load_configuration_from_envelope, upload._run_load, upload._new_job_id
    sent: ContextVar[str | None] = ContextVar("sent", default=None)

    def configuration(envelope: Mapping[str, Any]) -> dict[str, Any]:
        return {**configuration_of(envelope), _SENT: envelope.get("jobReference", {}).get("jobId")}

    async def load(*, project_id: str, configuration: Mapping[str, Any], ctx: Any, **rest: Any) -> Any:
        id_ = configuration[_SENT]
        if id_ is not None and ctx.catalog.get_job(project_id, id_) is not None:
            raise resource_already_exists(ResourceRef("job", project_id, resource_id=id_))
        sent.set(id_)
        own = {key: value for key, value in configuration.items() if key != _SENT}
        return await run_load(project_id=project_id, configuration=own, ctx=ctx, **rest)

    upload._load_configuration_from_envelope = configuration
    upload._run_load = load
    upload._new_job_id = lambda: sent.get() or new_id()


if __name__ == "__main__":
    from bqemulator.cli import main  # type: ignore[import-not-found]

    take_ids_as_sent()
    sys.exit(main(["start", *sys.argv[1:]]))
