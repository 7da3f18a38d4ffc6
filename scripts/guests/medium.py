"""The air between simulated radios (mac80211_hwsim): attempts get lost, the more often the faster they are sent.

Without it every frame arrives at its first attempt. Speaks the kernel's generic netlink family MAC80211_HWSIM
(drivers/net/wireless/virtual/mac80211_hwsim.h), from which the numbers are.

  medium.py LOSS     LOSS: the share of attempts lost at the lowest rate; at the n-th it is LOSS + n · 0.04
"""

import random
import socket
import struct
import sys

REGISTER, FRAME, TX_INFO_FRAME = 1, 2, 3
RECEIVER, TRANSMITTER, FRAME_BYTES, FLAGS, RX_RATE, SIGNAL, TX_INFO, COOKIE, FREQUENCY = 1, 2, 3, 4, 5, 6, 7, 8, 19
NO_ACK, ACKED = 2, 4
RADIOS = 4
SIGNAL_DBM = -50


def attributes(data):
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


def attribute(kind, value):
    return struct.pack("=HH", len(value) + 4, kind) + value + b"\0" * (-len(value) % 4)


class Netlink:
    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)  # NETLINK_GENERIC
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind((0, 0))

    def send(self, family, command, payload, acknowledge=False):
        body = struct.pack("=BBH", command, 1, 0) + payload
        self.socket.send(struct.pack("=IHHII", len(body) + 16, family, 5 if acknowledge else 1, 0, 0) + body)

    def receive(self):
        data = self.socket.recv(1 << 16)
        while data:
            length, kind = struct.unpack_from("=IH", data)
            yield kind, data[16:length]
            data = data[(length + 3) & ~3 :]


def main():
    loss = float(sys.argv[1])
    draw = random.Random(1)
    netlink = Netlink()
    netlink.send(16, 3, attribute(2, b"MAC80211_HWSIM\0"))  # CTRL_CMD_GETFAMILY
    _, answer = next(netlink.receive())
    (family,) = struct.unpack("=H", attributes(answer[4:])[1])
    netlink.send(family, REGISTER, b"", acknowledge=True)
    while True:
        for kind, body in netlink.receive():
            if kind != family or body[0] != FRAME:
                continue
            got = attributes(body[4:])
            frame, sender = got[FRAME_BYTES], got[TRANSMITTER]
            (flags,) = struct.unpack("=I", got[FLAGS])
            # Four pairs of a rate's index and how many attempts it may have.
            pairs = struct.unpack("=" + "bB" * 4, got[TX_INFO][:8])
            tries = [(i, n) for i, n in zip(pairs[::2], pairs[1::2]) if i >= 0 and n > 0]
            is_group = bool(frame[4] & 1)
            needs_ack = not (flags & NO_ACK or is_group)
            made, arrived, rate = [], not needs_ack, tries[0][0] if tries else 0
            for index, most in tries if needs_ack else []:
                used = 0
                while used < most and not arrived:
                    used += 1
                    arrived = draw.random() >= min(0.9, loss + 0.04 * index)
                if used:
                    made.append((index, used))
                    rate = index
            if not needs_ack:
                made = [(rate, 1)]
            made += [(-1, 0)] * (4 - len(made))
            if needs_ack and arrived:
                flags |= ACKED
            if arrived:
                for radio in range(RADIOS):
                    # A radio has the address 02:00:00:00:NN:00 for frames, and 42:00:00:00:NN:00 here.
                    address = bytes([0x42, 0, 0, 0, radio, 0])
                    if address == sender or not (is_group or frame[4:10] == b"\x02" + address[1:]):
                        continue
                    netlink.send(
                        family,
                        FRAME,
                        attribute(RECEIVER, address)
                        + attribute(FRAME_BYTES, frame)
                        + attribute(RX_RATE, struct.pack("=I", min(rate, 11)))
                        + attribute(SIGNAL, struct.pack("=i", SIGNAL_DBM))
                        + attribute(FREQUENCY, got[FREQUENCY]),
                    )
            netlink.send(
                family,
                TX_INFO_FRAME,
                attribute(TRANSMITTER, sender)
                + attribute(FLAGS, struct.pack("=I", flags))
                + attribute(COOKIE, got[COOKIE])
                + attribute(TX_INFO, b"".join(struct.pack("=bB", *pair) for pair in made))
                + attribute(SIGNAL, struct.pack("=i", SIGNAL_DBM)),
            )


if __name__ == "__main__":
    main()
