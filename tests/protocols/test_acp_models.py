"""The model of an editor's session: it chooses among those that the configured server lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from acp.exceptions import RequestError
from acp.helpers import text_block
from acp.schema import SessionConfigOptionSelect
from editor import Editor, connected
from hosting import Place, answer

from artoo.testing import server as scripted_server
from artoo.testing.script import Asked, Scripted
from artoo.testing.server import ScriptedServer


async def test_a_session_uses_the_chosen_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its next prompt on, and no other session does. A name that the server does not list is refused."""
    listed = {"data": [{"id": "other"}, {"id": "scripted"}, {"id": "other"}, {}]}

    def models_body(owned_by: str) -> object:
        return listed

    monkeypatch.setattr(scripted_server, "models_body", models_body)
    asked: list[object] = []

    def recorded(request: Asked) -> Scripted:
        asked.append(request.body["model"])
        return answer(request)

    async with ScriptedServer(recorded) as server:
        place = Place(tmp_path / "person", server.base_url)
        place.project.mkdir(parents=True)
        async with connected(place, Editor()) as here:
            opened = await here.agent.new_session(cwd=str(place.project))
            [option] = opened.config_options or []
            assert isinstance(option, SessionConfigOptionSelect)
            assert (option.id, option.category, option.current_value) == ("model", "model", "scripted")
            assert [getattr(one, "value", None) for one in option.options] == ["scripted", "other"]
            session = opened.session_id
            told = await here.agent.set_config_option("model", session, "other")
            assert told is not None and told.config_options[0].current_value == "other"
            with pytest.raises(RequestError, match="scripted, other"):
                await here.agent.set_config_option("model", session, "third")
            await here.agent.prompt(prompt=[text_block("run: echo one")], session_id=session)
            assert set(asked) == {"other"}
            asked.clear()
            second = (await here.agent.new_session(cwd=str(place.project))).session_id
            await here.agent.prompt(prompt=[text_block("run: echo two")], session_id=second)
            assert set(asked) == {"scripted"}
