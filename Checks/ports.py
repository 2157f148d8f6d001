"""Ports of 127.0.0.1 for the servers that checks start."""

import socket

_kept = []


def free_port(host="127.0.0.1"):
    """Reserves a free port until this process ends.

    Without a reservation, a port that was free a moment ago may be the source port of a connection when the server binds it. So a
    socket that does not listen stays bound to the port. The system then assigns the port to no other socket. A server can still bind
    it, because servers set SO_REUSEADDR.
    """
    reservation = socket.socket()
    reservation.bind((host, 0))
    # Set this only after the bind. If it were set before, the system could assign a port that another process has reserved.
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _kept.append(reservation)
    return reservation.getsockname()[1]
