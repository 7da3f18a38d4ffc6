"""HTTP/3 by aioquic: `serve FOLDER` sends 1 MiB to whoever asks, with the certificate of FOLDER; `get FOLDER` prints how many ms
each of three downloads took, over a connection each."""

import asyncio
import sys
import time
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent

PORT, BODY = 4433, bytes(1 << 20)
FOLDER = Path(sys.argv[2])


class Peer(QuicConnectionProtocol):
    """Hands the events of HTTP/3 to `on_http`."""

    def __init__(self, *arguments, **named) -> None:
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event: QuicEvent) -> None:
        for each in self.http.handle_event(event):
            self.on_http(each)


class Server(Peer):
    def on_http(self, event: H3Event) -> None:
        if isinstance(event, HeadersReceived):
            self.http.send_headers(event.stream_id, [(b":status", b"200"), (b"content-length", str(len(BODY)).encode())])
            self.http.send_data(event.stream_id, BODY, end_stream=True)
            self.transmit()


class Client(Peer):
    received = 0

    async def get(self) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        stream = self._quic.get_next_available_stream_id()
        names = {":method": "GET", ":scheme": "https", ":authority": "server", ":path": "/"}
        self.http.send_headers(stream, [(name.encode(), value.encode()) for name, value in names.items()], end_stream=True)
        self.transmit()
        await self.ended

    def on_http(self, event: H3Event) -> None:
        if isinstance(event, DataReceived):
            self.received += len(event.data)
            if event.stream_ended:
                self.ended.set_result(None)


async def run_server() -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(FOLDER / "tls.pem", FOLDER / "tls.key")
    await serve("::", PORT, configuration=configuration, create_protocol=Server)
    await asyncio.Future()


async def run_client() -> None:
    for _ in range(3):
        configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="server")
        configuration.load_verify_locations(FOLDER / "tls.pem")
        start = time.monotonic()
        async with connect("server", PORT, configuration=configuration, create_protocol=Client) as client:
            await client.get()
            assert client.received == len(BODY), client.received
        print((time.monotonic() - start) * 1000)


asyncio.run(run_server() if sys.argv[1] == "serve" else run_client())
