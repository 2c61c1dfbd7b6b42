"""A2A by HTTP: for whoever has a token, for no page of a browser, with signed cards that need none."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import httpx
import pytest
from a2a.client import A2AClientError
from a2a.types import AgentCard
from a2a.utils.errors import A2AError
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from foreign import PEER, books, card_of, client_of, hosted, message, started
from jwt import PyJWKSet

GET: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
VERSION = {"a2a-version": "1.0"}


async def test_who_may_not(tmp_path: Path) -> None:
    """No token, a wrong one, another Host, a page's Origin, a body without end: refused, and nothing is begun."""
    async with hosted(tmp_path) as place, started(place) as served, httpx.AsyncClient() as http:
        known = {"authorization": f"Bearer {served.token()}", **VERSION}
        for path in ("/rpc", "/v1/message:send", "/agents/ada/rpc", "/agents/ada/v1/message:send"):
            for headers, code in (
                (VERSION, 401),
                ({"authorization": "Bearer wrong"}, 401),
                ({**known, "host": "evil.example"}, 421),
                ({**known, "origin": "http://evil.example"}, 403),
            ):
                assert (await http.post(served.url + path, json=GET, headers=headers)).status_code == code
        sent = await http.post(served.url + "/rpc", content=b"x" * (2 << 20), headers=known)
        assert sent.status_code == 413
        assert (await http.get(served.url + "/v1/tasks", headers=VERSION)).status_code == 401
        async with books(place) as office:
            assert await office.board.list() == ()
        for file in place.home.glob("a2a-*"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_cards_are_signed(tmp_path: Path) -> None:
    """Team and agent have cards whose signature holds with the published key, and not after a change."""
    async with hosted(tmp_path) as place, started(place) as served, httpx.AsyncClient() as http:
        keys = PyJWKSet.from_dict((await http.get(served.url + "/.well-known/jwks.json")).json())
        verify = create_signature_verifier(lambda kid, _: keys[kid or ""], ["ES256"])
        for agent in ("", "ada"):
            card = await card_of(served, http, agent)
            verify(card)
            assert [one.protocol_binding for one in card.supported_interfaces] == [
                "JSONRPC",
                "HTTP+JSON",
                "JSONRPC",
            ]
            changed = AgentCard()
            changed.CopyFrom(card)
            changed.description = "another"
            with pytest.raises(InvalidSignaturesError):
                verify(changed)
        shown = json.dumps((await http.get(served.url + "/agents/ada/.well-known/agent-card.json")).json())
        assert "Exact." not in shown, "a persona is the agent's own"


async def test_each_has_its_own_tasks(tmp_path: Path) -> None:
    """A foreign agent sees, follows and cancels nothing of another's, and asks only whom the policy names."""
    peers = {"partner": PEER, "other": {**PEER, "agents": ["ada"]}}
    async with hosted(tmp_path, peers) as place, started(place) as served:
        async with client_of(served) as client:
            request = message("wait four.txt", "m1", return_immediately=True)
            task = (await anext(client.send_message(request))).task
        async with served.http("other") as http:
            for agent, missing in (("", "you may ask ada"), ("/agents/ada", "not found")):
                for method in ("GetTask", "CancelTask", "SubscribeToTask"):
                    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": task.id}}
                    answer = await http.post(f"{served.url}{agent}/rpc", json=asked, headers=VERSION)
                    assert missing in answer.json()["error"]["message"].lower(), answer.text
            listed = await http.get(served.url + "/agents/ada/v1/tasks", headers=VERSION)
            assert listed.json()["totalSize"] == 0
        async with client_of(served, name="other") as client:
            with pytest.raises((A2AError, A2AClientError)):
                await anext(client.send_message(message("make five.txt", "m2")))


async def test_a_body_that_says_it_is_no_json(tmp_path: Path) -> None:
    """Another Content-Type is refused by both bindings, and nothing is begun; one that is not said is JSON."""
    asked = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "make seven.txt"}]}}
    wrapped = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": asked}
    plain = {**VERSION, "content-type": "text/plain"}
    async with hosted(tmp_path) as place, started(place) as served, served.http() as http, books(place) as office:
        answer = await http.post(served.url + "/rpc", content=json.dumps(wrapped), headers=plain)
        assert answer.json()["error"]["code"] == -32005
        answer = await http.post(served.url + "/v1/message:send", content=json.dumps(asked), headers=plain)
        assert (answer.status_code, answer.json()["error"]["code"]) == (415, 415)
        answer = await http.post(served.url + "/rpc", content=json.dumps(GET).encode(), headers=VERSION)
        assert "result" in answer.json()
        assert await office.board.list() == ()
