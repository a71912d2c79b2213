"""Processes that exchange arrays: in threads here, over real connections."""

import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tasks.training.peers import TOKEN_BYTES, Peers

TOKEN = bytes(range(TOKEN_BYTES))


def together(peers, call):
    """``call(place, peer)`` of all at once: what they return or raise."""
    with ThreadPoolExecutor(len(peers)) as threads:
        calls = [threads.submit(call, place, peer) for place, peer in enumerate(peers)]
        return [own.exception() or own.result() for own in calls]


def connected(n):
    peers = [Peers("127.0.0.1") for _ in range(n)]
    addresses = [peer.address for peer in peers]
    assert together(peers, lambda place, peer: peer.meet(place, addresses, TOKEN)) == [None] * n
    return peers


@pytest.mark.parametrize("n", [1, 2, 5])
def test_everyone_is_sent_what_is_meant_for_it(n):
    peers = connected(n)
    for size in (0, 1, 1_000_000):
        received = together(
            peers, lambda place, peer, size=size: peer.exchange([np.full(size + to, 10 * place + to) for to in range(n)])
        )
        for to, arrays in enumerate(received):
            for place, array in enumerate(arrays):
                assert array.tolist() == [10 * place + to] * (size + to)
    assert [peer.exchanges for peer in peers] == [3] * n
    assert peers[0].sent_bytes == sum(8 * (size + to) for size in (0, 1, 1_000_000) for to in range(1, n))
    for peer in peers:
        peer.close()


def test_who_does_not_know_the_token_is_turned_away():
    peers = [Peers("127.0.0.1") for _ in range(2)]
    with socket.create_connection(peers[0].address) as stranger, socket.create_connection(peers[0].address) as gone:
        stranger.sendall(bytes(TOKEN_BYTES + 8))
        gone.close()
        addresses = [peer.address for peer in peers]
        assert together(peers, lambda place, peer: peer.meet(place, addresses, TOKEN)) == [None, None]
        assert stranger.recv(1) == b""
    received = together(peers, lambda place, peer: peer.exchange([np.array([place])] * 2))
    assert [[array.tolist() for array in arrays] for arrays in received] == [[[0], [1]], [[0], [1]]]
    with pytest.raises(OSError, match=r".+"):
        socket.create_connection(peers[0].address)
    for peer in peers:
        peer.close()


def test_who_says_nothing_holds_up_nobody(monkeypatch):
    monkeypatch.setattr("tasks.training.peers._GREETING", 0.2)
    monkeypatch.setattr("tasks.training.peers._SECONDS", 2.0)
    peers = [Peers("127.0.0.1") for _ in range(3)]
    addresses = [peer.address for peer in peers]
    with socket.create_connection(addresses[0]), socket.create_connection(addresses[0]) as slow:
        slow.sendall(TOKEN[:7])
        assert together(peers, lambda place, peer: peer.meet(place, addresses, TOKEN)) == [None] * 3
    for peer in peers:
        peer.close()


def test_one_that_is_gone_ends_the_exchange_of_all():
    peers = connected(3)

    def exchange(place, peer):
        if place == 1:
            return peer.close()
        try:
            return peer.exchange([np.zeros(10, np.int64)] * 3)
        finally:
            peer.close()

    first, gone, last = together(peers, exchange)
    assert isinstance(first, OSError)
    assert isinstance(last, OSError)
    assert gone is None
