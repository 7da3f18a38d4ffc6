"""A law for both directions, as an external policy: one rate for every host, agreed on by beacons.

It is an experiment: the built-in policy `lasthop` bounds uploads alone, and was made for 802.11g. What it reaches and
where it fails: docs/models/policy-common-rate.md. A try, without control and with it:

    lasthop compare scenarios/ten-downloads.toml --vary hosts.0.policy=none,external \
        --set 'hosts.0.command=["python3", "scenarios/external/common_rate.py"]'

Every host keeps r, the payload rate that each host may have, uploads and downloads together. At each tick:

1. The queue q is the mean, over the hosts with bulk connections, of how far round trips lie above their lowest, B.
2. r becomes the mean of the hosts' rates, then moves by what q lies off its target.
3. A host splits r over its bulk connections: each window, sent or received, holds its part for B and the target.
4. Control ends, for a while, where the queue does not fall (others fill it), or where the hosts together get less than
   without control.

An upload with little to send is never bounded. What is received is bulk from two full segments a tick on: no receiver
sees what its sender has to send.
"""

import json
import math
import sys

# The queue aimed at, in s: one part for the access point, one for each host that takes a turn (an aggregate), and one
# in proportion to the path, whose round trips vary more the longer it is.
TARGET_S, TARGET_OF_HOST_S, TARGET_OF_PATH = 0.010, 0.003, 0.1
# Control begins when the queue has been above this many targets, for this long in s.
CONGESTED, CONGESTED_S = 2.0, 2.0
# It waits while the total still grows by more than this part: slow start is no congestion.
GROWING = 1.1
# How much of the difference to the target is made up for in a tick, and the most that r falls or rises by.
GAIN, FALL, RISE = 0.4, 0.8, 1.2
# After control has begun r stands still until the windows have taken effect, in s.
SETTLE_S = 1.0
# r is never below this part of a fair share of what all hosts got without control.
LEAST_SHARE = 0.5
# Control costs too much where all hosts together get less than this part of what they got without it, for this long.
HARM, HARM_S, GRACE_S = 0.85, 3.0, 4.0
# Others fill the queue where it stays above CONGESTED targets this long, and two round trips.
STUCK_S = 5.0
# Without control for this long after it was given up, twice as long each time.
HOLD_S, LONGEST_HOLD_S = 20.0, 320.0
# After this long without control it is known whether control was to blame; if not, the hold is over.
CHECK_S = 8.0
# How fast the means forget, in s.
BULK_AGE_S, DELIVERED_AGE_S, TOTAL_AGE_S, PEER_AGE_S = 2.0, 2.0, 5.0, 2.0
# A connection is bulk if it had enough to send, or received, in this part of the ticks.
BULK = 0.6
# What is not bulk: less than this in flight, unless the bound itself allows no more, in segments.
FULL_SEGMENTS = 4
# With so many in flight it is bulk though nothing waits: its send buffer is in the network.
BUFFER_SEGMENTS = 32
# Windows of fewer segments would be acknowledged late.
LEAST_SEGMENTS = 2
# Paced a little faster than r: the window decides.
PACE = 1.25
SEGMENT_BYTES = 1448
KIND = 9
HARMED, RELEASED = 1 << 30, 1 << 31


def decayed(dt, age):
    return math.exp(-dt / age)


class CommonRate:
    def __init__(self):
        self.connections = {}
        self.now = None
        self.delivered = self.total = self.free = self.kept = 0.0
        self.rate = None  # payload bytes per second that each host may have; None: no control
        self.excess = None
        self.bulk = False
        self.since = self.released_at = -math.inf
        self.hold_until, self.hold = 0.0, HOLD_S
        self.congested_s = self.stuck_s = self.harm_s = self.idle_s = 0.0
        self.wants_out = False
        self.by = "own-rtt"  # what began control: this host's round trips, or a peer's report

    def observe(self, seen, dt):
        """Updates what this host knows of itself; returns its lowest round trip, the mean in s."""
        before, self.connections = self.connections, {}
        got, excesses, bases = 0, [], []
        keep = decayed(dt, BULK_AGE_S)
        for flow in seen["flows"]:
            acked, received = flow["acked_bytes"], flow["received_bytes"]
            old = before.get(flow["id"], (acked, received, 0.0, 0.0, self.now, FULL_SEGMENTS))
            sent, arrived = acked - old[0], received - old[1]
            got += sent + arrived
            flight = flow["in_flight_segments"]
            full = flow["backlogged"] and flight >= min(FULL_SEGMENTS, old[5]) or flight >= BUFFER_SEGMENTS
            up = old[2] * keep + full * (1 - keep)
            down = old[3] * keep + flow["receiving"] * (1 - keep)
            progress = self.now if sent > 0 else old[4]
            self.connections[flow["id"]] = (acked, received, up, down, progress, FULL_SEGMENTS)
            if down > BULK and arrived > 0 and flow["receive_rtt_ns"] and flow["min_receive_rtt_ns"]:
                excesses.append((flow["receive_rtt_ns"] - flow["min_receive_rtt_ns"]) / 1e9)
                bases.append(flow["min_receive_rtt_ns"] / 1e9)
            if up > BULK and self.now - progress < 2.0 and flow["srtt_ns"] and flow["min_rtt_ns"]:
                excesses.append((flow["srtt_ns"] - flow["min_rtt_ns"]) / 1e9)
                bases.append(flow["min_rtt_ns"] / 1e9)
        was_bulk, self.bulk = self.bulk, any(max(c[2], c[3]) > BULK for c in self.connections.values())
        keep = decayed(dt, DELIVERED_AGE_S) if was_bulk else 0.0
        self.delivered = self.delivered * keep + got / dt * (1 - keep)
        self.excess = max(0.0, sum(excesses) / len(excesses)) if excesses else None
        return sum(bases) / len(bases) if bases else 0.0

    def decide(self, seen):
        now = seen["now_ns"] / 1e9
        dt = 0.5 if self.now is None else min(max(now - self.now, 0.05), 2.0)
        self.now = now
        own_base = self.observe(seen, dt)

        # What all hosts say. Old reports count less.
        weight, queue, base = (1.0, self.excess, own_base) if self.excess is not None else (0.0, 0.0, 0.0)
        hosts, total = (1, self.delivered) if self.bulk else (0, 0.0)
        most, rates, news, frees, outs, released = self.delivered, [], [], [], 0, 0
        for report in seen["peers"]["reports"]:
            word = report["word"]
            if not word or word["kind"] != KIND:
                continue
            rate, delivered, state, free = (int(word["hex"][at : at + 8], 16) for at in (0, 8, 16, 24))
            excess = (state & (HARMED - 1)) - 1
            if excess < 0:
                continue
            age = (seen["now_ns"] - report["heard_at_ns"]) / 1e9
            counts = decayed(age, PEER_AGE_S)
            weight += counts
            queue += counts * min(excess / 1e6, 5.0)
            base += counts * (report["min_rtt_ns"] / 1e9 if report["min_rtt_ns"] else own_base)
            hosts, total, most = hosts + 1, total + delivered, max(most, delivered)
            released += bool(state & RELEASED)
            frees += [free] if free else []
            if rate:
                rates.append(rate)
                outs += bool(state & HARMED)
                news += [rate] if age <= dt else []
        if weight > 0.0:
            queue, base = queue / weight, base / weight
        target = TARGET_S + TARGET_OF_HOST_S * hosts + TARGET_OF_PATH * base
        keep = decayed(dt, TOTAL_AGE_S) if self.bulk and self.total else 0.0
        self.total = self.total * keep + total * (1 - keep)

        if self.rate is None:
            self.without_control(dt, hosts, total, queue > CONGESTED * target, rates, released, frees)
        else:
            self.under_control(dt, hosts, total, most, queue, base, target, news, outs, released, len(rates))
        if self.rate is None:
            reason = "given up for a while" if now < self.hold_until else f"a queue of {queue * 1e3:.0f} ms"
            return {"word": self.word(), "reason": reason}
        return {
            "flows": list(self.bounds(seen, target)),
            "word": self.word(),
            "reason": f"{self.rate * 8e-6:.2f} Mb/s for each of {hosts} hosts, {queue * 1e3:.0f} ms of queue",
        }

    def without_control(self, dt, hosts, total, congested, rates, released, frees):
        if not self.bulk:
            self.congested_s = self.free = 0.0
            return
        if self.now - self.released_at >= 2.0:
            keep = decayed(dt, TOTAL_AGE_S) if self.free else 0.0
            self.free = self.free * keep + total * (1 - keep)
        self.congested_s = self.congested_s + dt if congested and total < GROWING * self.free else 0.0
        checked = self.now - self.released_at > CHECK_S
        if checked and self.now < self.hold_until and self.kept > HARM * self.free:
            self.hold_until, self.hold = self.now, HOLD_S
        if self.now < self.hold_until:
            return
        if rates and len(rates) >= released:
            self.rate = sorted(rates)[len(rates) // 2]
            self.free = sorted(frees)[len(frees) // 2] if frees else self.free
            self.by = "peer"
        elif self.congested_s >= CONGESTED_S:
            self.rate, self.by = total / hosts, "own-rtt"
        self.since, self.stuck_s, self.harm_s, self.idle_s, self.wants_out = self.now, 0.0, 0.0, 0.0, False

    def under_control(self, dt, hosts, total, most, queue, base, target, news, outs, released, controlling):
        if self.bulk:
            near = [min(max(rate, self.rate / 2), 2 * self.rate) for rate in news]
            self.rate = (self.rate + sum(near)) / (1 + len(near))
            if queue > CONGESTED * target:
                self.rate = min(self.rate, max(total, self.free) / hosts)
            if self.now - self.since > SETTLE_S:
                step = 1 - GAIN * (queue - target) / (base + target)
                self.rate *= min(max(step, FALL), RISE)
            busy = sum(max(c[2], c[3]) > BULK for c in self.connections.values())
            least = LEAST_SEGMENTS * SEGMENT_BYTES * busy / (base + target)
            self.rate = max(min(max(self.rate, LEAST_SHARE * self.free / hosts), 2 * most), least)
        if self.now - self.since > GRACE_S:
            self.free = max(self.free, self.total)
        harmed = self.now - self.since > GRACE_S and total < HARM * self.free
        self.harm_s = self.harm_s + dt if harmed else 0.0
        self.stuck_s = self.stuck_s + dt if queue > CONGESTED * target else 0.0
        self.idle_s = 0.0 if self.bulk else self.idle_s + dt
        stuck = self.stuck_s > STUCK_S + 2 * min(base + queue, 2.0)
        self.wants_out = stuck or self.harm_s > HARM_S
        votes = outs + self.wants_out + released
        if 2 * votes > 1 + controlling + released:
            self.hold_until, self.hold = self.now + self.hold, min(2 * self.hold, LONGEST_HOLD_S)
            self.kept = 0.0 if stuck else self.total
            self.rate, self.free, self.congested_s, self.released_at = None, 0.0, 0.0, self.now
        elif self.idle_s > 5.0:
            self.rate, self.congested_s, self.released_at = None, 0.0, self.now
        elif self.now - self.since > 2 * self.hold:
            self.hold = HOLD_S

    def bounds(self, seen, target):
        bulk = [max(c[2], c[3]) > BULK for c in self.connections.values()]
        share = self.rate / max(1, sum(bulk))
        for flow in seen["flows"]:
            state = self.connections[flow["id"]]
            if state[3] > BULK and flow["min_receive_rtt_ns"]:
                window = share * (flow["min_receive_rtt_ns"] / 1e9 + target)
                least = LEAST_SEGMENTS * SEGMENT_BYTES
                yield {"id": flow["id"], "max_receive_bytes": int(max(window, least)), "control": self.by}
            elif state[2] > BULK and flow["min_rtt_ns"]:
                segment = flow["mss_bytes"] or SEGMENT_BYTES
                window = max(math.ceil(share * (flow["min_rtt_ns"] / 1e9 + target) / segment), LEAST_SEGMENTS)
                self.connections[flow["id"]] = (*state[:5], min(window, FULL_SEGMENTS))
                pace = max(share * PACE * 8e-6, 0.032)
                yield {"id": flow["id"], "max_segments": window, "max_pacing_mbps": pace, "control": self.by}

    def word(self):
        top = (1 << 32) - 1
        excess = 0 if self.excess is None else min(int(self.excess * 1e6) + 1, HARMED - 1)
        state = excess | (HARMED if self.rate and self.wants_out else 0)
        state |= RELEASED if self.now < self.hold_until else 0
        free = self.free if self.bulk else 0.0
        numbers = (self.rate or 0.0, self.delivered, state, free)
        return {"kind": KIND, "hex": "".join(f"{min(int(number), top):08x}" for number in numbers)}


if __name__ == "__main__":
    sys.stdin.readline()  # hello
    policy = CommonRate()
    for line in sys.stdin:
        print(json.dumps(policy.decide(json.loads(line))), flush=True)
