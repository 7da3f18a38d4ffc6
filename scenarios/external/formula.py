"""The policy `formula` (docs/models/policy-formula.md) as an external policy: hayakawa's equations 1 to 5.

It decides as the built-in one does with its default settings; a test holds both to the same bytes.
"""

import json
import sys

ENABLE_RATIO = 6.0
CUT_RATIO = 5.0
EXPONENT = -0.15
BANDWIDTH_MAX_MBPS = 19.0
SEGMENT_BYTES = 1500
MAXIMUM_TERMINALS = 64


class Formula:
    """Control of a connection begins when its RTT has risen, and lasts until it ends."""

    def __init__(self):
        self.lowest_rtt_ns = {}
        self.enabled = set()

    def decide(self, seen):
        flows = seen["flows"]
        ids = {flow["id"] for flow in flows}
        self.enabled &= ids
        self.lowest_rtt_ns = {id: rtt for id, rtt in self.lowest_rtt_ns.items() if id in ids}
        busy_flows = max(1, sum(flow["busy"] and not flow["left_alone"] for flow in flows))
        terminals = min(seen["peers"]["terminals"], MAXIMUM_TERMINALS)
        limits = [self.limit(flow, busy_flows, terminals) for flow in flows]
        return {"flows": [limit for limit in limits if limit is not None]}

    def limit(self, flow, busy_flows, terminals):
        """The limits of a connection; None: it is not under control."""
        rtts = [self.lowest_rtt_ns.get(flow["id"]), flow["min_rtt_ns"], flow["srtt_ns"]]
        rtts = [rtt for rtt in rtts if rtt is not None]
        if rtts:
            self.lowest_rtt_ns[flow["id"]] = min(rtts)
        if flow["srtt_ns"] is None or min(rtts) == 0:
            return None
        ratio = flow["srtt_ns"] / min(rtts)  # eqs. 1, 5
        if ratio > ENABLE_RATIO:
            self.enabled.add(flow["id"])
        if flow["id"] not in self.enabled:
            return None
        segments = 1
        if ratio <= CUT_RATIO:
            bandwidth_mbps = BANDWIDTH_MAX_MBPS * terminals**EXPONENT  # eqs. 3, 4
            rtt_s = flow["srtt_ns"] / 1e9
            ideal = bandwidth_mbps * 1e6 * rtt_s / (8.0 * SEGMENT_BYTES * terminals)  # eq. 2
            segments = max(1, round_half_up(ideal / busy_flows))
        return {"id": flow["id"], "max_segments": segments, "control": "own-rtt"}


def round_half_up(number):
    return int(number) + (number - int(number) >= 0.5)


policy = Formula()
hello = json.loads(sys.stdin.readline())
for line in sys.stdin:
    print(json.dumps(policy.decide(json.loads(line))), flush=True)
