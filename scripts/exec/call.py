"""A call: 160 bytes each 20 ms for 15 s, which `serve` sends back. `call` prints each one's round trip in ms; a lost one counts
as a second."""

import os
import socket
import struct
import sys
import threading
import time

PORT, BYTES, EVERY_S, COUNT, LOST_MS = 5004, 160, 0.02, 750, 1000.0

peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "serve":
    peer.bind(("", PORT))
    while True:
        packet, caller = peer.recvfrom(2048)
        peer.sendto(packet, caller)


def listen() -> None:
    while len(took) < COUNT:
        try:
            took.append((time.monotonic() - struct.unpack_from("!d", peer.recv(2048))[0]) * 1000)
        except TimeoutError:
            return


took: list[float] = []
peer.connect((os.environ["LASTHOP_SERVER"], PORT))
peer.settimeout(2)
listener = threading.Thread(target=listen)
listener.start()
start = time.monotonic()
for number in range(COUNT):
    time.sleep(max(0.0, start + number * EVERY_S - time.monotonic()))
    peer.send(struct.pack("!d", time.monotonic()).ljust(BYTES, b"\0"))
listener.join()
print("\n".join(f"{each:.1f}" for each in took + [LOST_MS] * (COUNT - len(took))))
