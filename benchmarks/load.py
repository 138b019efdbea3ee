"""A client that costs little: keep-alive sockets, requests prepared once, answers read by their length."""

import socket
import threading
import time


def request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def exchange(line: socket.socket, message: bytes) -> tuple[int, bytes]:
    line.sendall(message)
    data = b""
    while b"\r\n\r\n" not in data:
        data += line.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(row[15:]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += line.recv(65536)
    return int(head.split()[1]), body


def rate(port: int, message: bytes, status: int, seconds: float, connections: int) -> float:
    """Answers a second, each checked for its status."""
    counts = [0] * connections
    stop_at = time.perf_counter() + seconds

    def work(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as line:
            while time.perf_counter() < stop_at:
                got, body = exchange(line, message)
                assert got == status, (got, body)
                counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(connections)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def median_seconds(port: int, message: bytes, times: int) -> float:
    taken = []
    with socket.create_connection(("127.0.0.1", port)) as line:
        for _ in range(times):
            started = time.perf_counter()
            got, _ = exchange(line, message)
            taken.append(time.perf_counter() - started)
            assert got == 200, got
    return sorted(taken)[times // 2]
