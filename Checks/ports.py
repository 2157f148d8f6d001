"""Ports of 127.0.0.1 for the servers that checks start."""

import socket

_kept = []


def free_port(host="127.0.0.1"):
    """Reserves a free port until this process ends.

    A port that was only free a moment ago may be the source port of any connection when the server binds it. So a socket stays
    bound to it without listening: the system then gives the port to nobody who asks for a free one, and servers bind it all the
    same, because they set SO_REUSEADDR.
    """
    reservation = socket.socket()
    reservation.bind((host, 0))
    # Only now: until here, another process's reservation refuses it.
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _kept.append(reservation)
    return reservation.getsockname()[1]
