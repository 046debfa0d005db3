"""The control port's HTTP over real sockets: who may use it, and limits on bytes, time and connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest
import pytest_asyncio

from rewindmq.cluster.errors import ClusterError
from rewindmq.testing.control.http_request import MAX_BODY_BYTES, HttpError, HttpRequest
from rewindmq.testing.control.http_server import MAX_ERROR_CHARACTERS, MAX_HEAD_BYTES, HttpServer
from tests.testing.control.http_client import HttpClient, read_response

TOKEN = "a-token-of-this-test"


async def echo(request: HttpRequest) -> object:
    return {"method": request.method, "path": request.path, "body": request.body.decode()}


@pytest_asyncio.fixture
async def client() -> AsyncIterator[HttpClient]:
    async with HttpServer(TOKEN, echo).listening(0) as url:
        yield HttpClient(url, TOKEN)


async def test_a_request_is_answered_as_json(client: HttpClient) -> None:
    response = await client.send("POST", "/v1/a%20b/?x=1", b'{"c": 1}')
    assert response == (200, {"method": "POST", "path": ["v1", "a b"], "body": '{"c": 1}'})


async def test_a_client_that_waits_for_100_continue_gets_it(client: HttpClient) -> None:
    async with client.connected() as (reader, writer):
        lines = [f"{name}: {value}" for name, value in client.headers.items()]
        head = ["POST /x HTTP/1.1", *lines, "Content-Length: 2", "Expect: 100-continue", "", ""]
        writer.write("\r\n".join(head).encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"{}")
        assert (await read_response(reader)).value["body"] == "{}"


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xe9\xff", TOKEN],
)
async def test_a_request_without_the_token_is_refused(client: HttpClient, authorization: str | None) -> None:
    response = await client.send("GET", "/", headers={"Authorization": authorization})
    assert response.status == 401
    assert "Authorization: Bearer TOKEN" in response.error


@pytest.mark.parametrize("host", [None, "", "evil.example", "127.0.0.1.evil.example", "[::1", "10.0.0.1:80"])
async def test_another_host_name_is_refused(client: HttpClient, host: str | None) -> None:
    """A web page's name may be made to resolve to 127.0.0.1; the browser still sends that name."""
    response = await client.send("GET", "/", headers={"Host": host})
    assert response.status == 403
    assert "127.0.0.1 or localhost" in response.error


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "[::1]:99", "127.0.0.1"])
async def test_the_names_of_this_machine_are_accepted(client: HttpClient, host: str) -> None:
    assert (await client.send("GET", "/", headers={"Host": host})).status == 200


async def test_a_web_page_is_refused_even_with_the_token(client: HttpClient) -> None:
    response = await client.send("GET", "/", headers={"Origin": "http://127.0.0.1"})
    assert (response.status, "web page" in response.error) == (403, True)


async def test_a_huge_body_is_refused_before_it_is_read(client: HttpClient) -> None:
    response = await client.send("POST", "/", b"x" * (1 << 22))
    assert response.status == 413
    assert str(MAX_BODY_BYTES) in response.error
    response = await client.send("POST", "/", headers={"Content-Length": "9" * 5_000})
    assert response.status == 413


@pytest.mark.parametrize("length", ["-1", "1e3", "", "٣".encode().decode("latin-1")])
async def test_a_length_that_is_no_number_is_refused(client: HttpClient, length: str) -> None:
    assert (await client.send("POST", "/", headers={"Content-Length": length})).status == 400


async def test_a_chunked_body_is_refused(client: HttpClient) -> None:
    response = await client.send("POST", "/", headers={"Transfer-Encoding": "chunked"})
    assert (response.status, "Content-Length" in response.error) == (411, True)


async def test_long_headers_are_refused(client: HttpClient) -> None:
    response = await client.send("GET", "/", headers={"X-Long": "x" * (2 * MAX_HEAD_BYTES)})
    assert response.status == 431
    assert str(MAX_HEAD_BYTES) in response.error


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 505),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"GET / HTTP/1.1 x\r\n\r\n", 400),
    ],
)
async def test_what_is_no_http_gets_a_clear_error(client: HttpClient, data: bytes, status: int) -> None:
    response = await client.send_bytes(data)
    assert (response.status, bool(response.error)) == (status, True)


@pytest.mark.parametrize("data", [b"", b"GET / HT", b"POST / HTTP/1.1\r\n"])
async def test_a_slow_client_is_refused_at_its_time_limit(data: bytes) -> None:
    async with HttpServer(TOKEN, echo, request_seconds=0.05).listening(0) as url:
        response = await HttpClient(url, TOKEN).send_bytes(data)
    assert (response.status, "not complete after 0.05 s" in response.error) == (408, True)


async def test_a_body_that_does_not_come_is_refused_at_the_time_limit() -> None:
    async with HttpServer(TOKEN, echo, request_seconds=0.5).listening(0) as url:
        response = await HttpClient(url, TOKEN).send("POST", "/", headers={"Content-Length": "1"})
    assert response.status == 408


async def test_connections_beyond_the_limit_are_refused() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def wait(request: HttpRequest) -> object:
        entered.set()
        await leave.wait()
        return {}

    async with HttpServer(TOKEN, wait, max_connections=1).listening(0) as url:
        client = HttpClient(url, TOKEN)
        first = asyncio.create_task(client.get("/"))
        await entered.wait()
        refused = await client.get("/")
        leave.set()
        assert ((await first).status, refused.status) == (200, 503)


async def test_a_request_in_progress_does_not_keep_the_port_open() -> None:
    entered = asyncio.Event()

    async def wait(request: HttpRequest) -> object:
        entered.set()
        return await asyncio.get_running_loop().create_future()

    async with contextlib.AsyncExitStack() as serving:
        client = HttpClient(await serving.enter_async_context(HttpServer(TOKEN, wait).listening(0)), TOKEN)
        async with client.connected() as (reader, writer):
            lines = [f"{name}: {value}" for name, value in client.headers.items()]
            writer.write("\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode())
            await entered.wait()
            await serving.aclose()
            assert await reader.read() == b""


async def send_and_leave(client: HttpClient, entered: asyncio.Event) -> None:
    """Send a request, and close the connection when the server has begun to answer."""
    async with client.connected() as (_, writer):
        writer.write(client.encode("GET", "/"))
        await entered.wait()


async def test_a_wait_ends_when_its_client_leaves_and_makes_room_for_another() -> None:
    entered, left = asyncio.Event(), asyncio.Event()

    async def wait(request: HttpRequest) -> object:
        if request.path:
            return {}
        entered.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            left.set()

    server = HttpServer(TOKEN, wait, only_waits=lambda request: not request.path, max_connections=1)
    async with server.listening(0) as url:
        client = HttpClient(url, TOKEN)
        await send_and_leave(client, entered)
        await left.wait()
        assert (await client.get("/next")).status == 200


async def test_a_change_is_finished_although_its_client_leaves() -> None:
    entered, leave, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def change(request: HttpRequest) -> object:
        if request.path:
            leave.set()
            return {}
        entered.set()
        await leave.wait()
        finished.set()
        return {}

    async with HttpServer(TOKEN, change).listening(0) as url:
        client = HttpClient(url, TOKEN)
        await send_and_leave(client, entered)
        assert (await client.get("/leave")).status == 200
        await finished.wait()


async def test_a_value_that_is_no_json_is_a_clear_error() -> None:
    """Such as the path of a folder whose name is not UTF-8."""

    async def answer(request: HttpRequest) -> object:
        return {"path": "\udcff"}

    async with HttpServer(TOKEN, answer).listening(0) as url:
        response = await HttpClient(url, TOKEN).get("/")
    assert response.status == 500
    assert "the response cannot be written as JSON" in response.error


async def test_the_text_of_an_error_is_short_whatever_the_request_says(client: HttpClient) -> None:
    response = await client.send_bytes(b"x" * (MAX_HEAD_BYTES // 2) + b"\r\n\r\n")
    assert (response.status, len(response.error) <= 300) == (400, True)

    async def refuse(request: HttpRequest) -> object:
        raise HttpError(HTTPStatus.CONFLICT, "\udcff" + "x" * 100_000)

    async with HttpServer(TOKEN, refuse).listening(0) as url:
        response = await HttpClient(url, TOKEN).get("/")
    assert (response.status, len(response.error), response.error[-2:]) == (409, MAX_ERROR_CHARACTERS, "x…")


async def test_a_taken_port_is_a_clear_error() -> None:
    async with HttpServer(TOKEN, echo).listening(0) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(ClusterError, match=f"port {port} .* choose another --control-port"):
            async with HttpServer(TOKEN, echo).listening(port):
                pass
