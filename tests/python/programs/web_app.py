# SPDX-License-Identifier: Apache-2.0
"""The same hot handler as a WSGI application (Flask) and as an ASGI one (FastAPI)."""

from fastapi import FastAPI
from flask import Flask

wsgi = Flask(__name__)
asgi = FastAPI()


def hot_handler() -> int:
    total = 0
    for i in range(200_000):
        total += i * i
    return total


@wsgi.route("/")
def index() -> str:
    return str(hot_handler())


@asgi.get("/")
async def root() -> str:
    return str(hot_handler())
