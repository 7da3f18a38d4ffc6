"""An external policy for lasthop: WINDOW segments for each host, split over its busy connections.

Copy this file and change `decide`. docs/guide/external-policy.md says what it may look at.
"""

import json
import sys

WINDOW = 40


def decide(seen):
    flows = [flow for flow in seen["flows"] if not flow["left_alone"]]
    busy = sum(flow["busy"] for flow in flows)
    each = WINDOW // max(1, busy)
    return {
        "flows": [{"id": flow["id"], "max_segments": each} for flow in flows],
        "new_flows": {"max_segments": WINDOW // (busy + 1)},
        "reason": f"{WINDOW} segments over {busy} connections",
    }


hello = json.loads(sys.stdin.readline())  # {"schema": 1, "host": 0, "seed": 1, "tick_ns": 500000000, ...}
for line in sys.stdin:
    print(json.dumps(decide(json.loads(line))), flush=True)
