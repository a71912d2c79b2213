"""Processes that send each other arrays, every one to every other, over connections that stay open.

A call of a Dask actor takes a millisecond (two schedulers' loops, four threads), and a tree needs some twenty exchanges: so Dask only brings
the processes together, and they speak over sockets of their own. What is sent are int64 numbers and nothing that could be executed. A process
that connects shows the token of this training first. Connections are neither checked beyond that nor encrypted.
"""

import hmac
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np

from ltr.kernels.kernel import Ints

TOKEN_BYTES = 32
"""Length of a token."""
_SECONDS = 60.0
"""How long processes wait until all of them are connected."""
_GREETING = 5.0
"""How long one that has connected may take to show the token; who only knocks, as scanners of ports do, holds up nobody for longer."""
_AT_ONCE = 32_768
"""Bytes that the buffer of a connection takes, so that sending need not wait for the other side to receive."""


class Peers:
    """This process among its peers.

    Args:
        host: the address at which the others reach it.

    Attributes:
        address: where it waits for them, host and port.
        sent_bytes: numbers sent to others so far.
        exchanges: how often all of them have exchanged arrays.
    """

    def __init__(self, host: str) -> None:
        self.listening = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.address: tuple[str, int] = self.listening.getsockname()[:2]
        self.sending = ThreadPoolExecutor(1)
        self.connections: dict[int, socket.socket] = {}
        self.place = self.sent_bytes = self.exchanges = 0

    def meet(self, place: int, addresses: Sequence[tuple[str, int]], token: bytes) -> None:
        """Connects this process, the one at `place`, with all of them; all do this at once.

        Raises:
            OSError: where one does not come within a minute, but no TimeoutError.
        """
        self.place = place
        try:
            self._connect(addresses, token)
        except TimeoutError as error:
            raise ConnectionError("not all parts have connected") from error

    def _connect(self, addresses: Sequence[tuple[str, int]], token: bytes) -> None:
        place = self.place
        for other in range(place):
            connection = socket.create_connection(addresses[other], _SECONDS)
            connection.sendall(token + np.int64(place).tobytes())
            self.connections[other] = connection
        self.listening.settimeout(_SECONDS)
        while len(self.connections) < len(addresses) - 1:
            connection = self.listening.accept()[0]
            connection.settimeout(_GREETING)
            shown = np.zeros(TOKEN_BYTES // 8 + 1, np.int64)
            with suppress(ConnectionError, TimeoutError):
                _fill(connection, shown)
            if hmac.compare_digest(shown[:-1].tobytes(), token):
                self.connections[int(shown[-1])] = connection
            else:
                connection.close()
        self.listening.close()
        for connection in self.connections.values():
            _keep_open(connection)

    def exchange(self, sent: Sequence[Ints]) -> list[Ints]:
        """Sends array k, ``int64 [any]``, to process k; returns what each has sent to this one.

        Raises:
            OSError: where one of them is gone.
        """
        n = len(self.connections) + 1
        self.exchanges += 1
        ahead = [(self.place + step) % n for step in range(1, n)]
        n_bytes = [sent[to].nbytes for to in ahead]
        self.sent_bytes += sum(n_bytes)
        later = None
        if max(n_bytes, default=0) > _AT_ONCE:
            later = self.sending.submit(self._send, ahead, sent)
        else:
            self._send(ahead, sent)
        received = list(sent)
        for step in range(1, n):
            other = (self.place - step) % n
            received[other] = _array_from(self.connections[other])
        if later is not None:
            later.result()
        return received

    def _send(self, ahead: Sequence[int], sent: Sequence[Ints]) -> None:
        for to in ahead:
            self.connections[to].sendall(np.int64(sent[to].size).tobytes())
            self.connections[to].sendall(sent[to].data)

    def close(self) -> None:
        """Ends all connections: what waits for this process fails."""
        self.listening.close()
        for connection in self.connections.values():
            connection.close()


def _array_from(connection: socket.socket) -> Ints:
    size = np.empty(1, np.int64)
    _fill(connection, size)
    array = np.empty(size[0], np.int64)
    _fill(connection, array)
    return array


def _fill(connection: socket.socket, array: Ints) -> None:
    left = array.view(np.uint8).data
    while left:
        n = connection.recv_into(left)
        if n == 0:
            raise ConnectionResetError("the other process has closed the connection")
        left = left[n:]


def _keep_open(connection: socket.socket) -> None:
    """Waits as long as the other machine is there, and finds out within a minute where it is not."""
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
