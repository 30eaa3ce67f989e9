# SPDX-License-Identifier: Apache-2.0
"""The same hot handler as a WSGI application (Flask) and as an ASGI one.

The latter is FastAPI's, or a bare one where that has no wheel for the interpreter.
"""

import importlib.util
from collections.abc import Awaitable, Callable
from typing import Any

from flask import Flask

wsgi = Flask(__name__)


def hot_handler() -> int:
    total = 0
    for i in range(200_000):
        total += i * i
    return total


@wsgi.route("/")
def index() -> str:
    return str(hot_handler())


async def bare(
    scope: dict[str, Any], _receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        return
    body = str(hot_handler()).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


asgi: Any = bare
if importlib.util.find_spec("fastapi"):
    from fastapi import FastAPI

    asgi = FastAPI()

    @asgi.get("/")
    async def root() -> str:
        return str(hot_handler())
