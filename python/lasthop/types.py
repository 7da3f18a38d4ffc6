"""The tables inside results, for type checkers: `r.rtt_ms` is a `Distribution`, `c.cases[0].summary.jain_index` a `Spread`.

What a key means, docs/guide/result-json.md says. Units are in the names. A key that is absent from a result is `None`, 0
or an empty list, as its type says.
"""

from __future__ import annotations

from lasthop._record import Keys, Record

__all__ = [
    "Access",
    "AccessPoint",
    "AirShares",
    "Axis",
    "Case",
    "Cell",
    "Claim",
    "Condition",
    "Convergence",
    "Coordinate",
    "DatagramSummary",
    "Datagrams",
    "Deliveries",
    "DeliverySummary",
    "Distribution",
    "Figure",
    "Flow",
    "Found",
    "HostPolicy",
    "Interval",
    "LastLink",
    "Lateness",
    "Line",
    "Link",
    "Mark",
    "Measure",
    "Node",
    "Panel",
    "Point",
    "Policies",
    "Roam",
    "Run",
    "Setting",
    "Slowdown",
    "Spread",
    "StateShares",
    "Station",
    "Summary",
    "Tried",
    "Varied",
    "VideoSummary",
    "Videos",
]


class Distribution(Record):
    """A measured quantity, in the unit of its key."""

    min: float
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


class Lateness(Record):
    """Microseconds."""

    p50: float
    p99: float
    max: float


class Deliveries(Record):
    """Messages or transfers."""

    delivered: int
    undelivered: int
    took_ms: Distribution | None
    slowdown: Distribution | None


class Slowdown(Record):
    """Transfers of some sizes: how many times as long they took as their data need in the empty network."""

    above_bytes: int
    up_to_bytes: int | None
    transfers: int
    slowdown: Distribution


class Datagrams(Record):
    """Pings, or datagrams at a constant rate."""

    sent: int
    received: int
    lost: int
    lost_share: float | None
    one_way_ms: Distribution | None
    round_trip_ms: Distribution | None
    jitter_ms: float | None


class Videos(Record):
    """What viewers of videos saw."""

    chunks: int
    mean_bit_rate_mbps: float | None
    switches: int
    stalls: int
    stalled_s: float
    startup_s: float | None


class AirShares(Record):
    """Shares of the time on the air; of a wired link all are `None`."""

    idle: float | None
    contention: float | None
    success: float | None
    broadcast: float | None
    collision: float | None
    error: float | None


class Station(Record):
    """A station of a Wi-Fi access."""

    host: int
    up_phy_rate_mbps: float | None
    down_phy_rate_mbps: float | None
    up_retries: int
    down_retries: int
    up_aggregate_frames: float | None
    down_aggregate_frames: float | None
    up_air_share: float | None
    down_air_share: float | None


class Access(Record):
    """The shared last hop."""

    downlink_drops: int
    downlink_marks: int
    downlink_queue_mean: float | None
    downlink_queue_p95: float | None
    downlink_queue_max: int | None
    uplink_drops: int
    retry_drops: int
    path_drops: int
    collisions: int
    retries: int
    broadcast_losses: int | None
    left_behind: int
    air_shares: AirShares | None
    to_all_share: float | None
    stations: list[Station]


class AccessPoint(Record):
    """An access point among several, with its stations."""

    name: str
    goodput_mbps: float
    downlink_drops: int
    left_behind: int
    downlink_queue_mean: float
    downlink_queue_p95: float
    collisions: int
    air_shares: AirShares | None
    neighbours_share: float


class Node(Record):
    """A host or an access point, with the places of those that it hears, only senses, or is only disturbed by."""

    name: str
    cell: int
    at_m: list[float] | None
    hears: list[int]
    senses: list[int]
    disturbed_by: list[int]


class Roam(Record):
    """A host goes from one access point to another, by their places in `cells`."""

    host: int
    at_s: float
    outage_ms: float
    to: int
    at_m: list[float] | None
    silent_ms: float | None


class Link(Record):
    """A direction of a link."""

    place: str
    to: str
    packets: int
    sent_mbps: float
    utilization: float
    queue_mean: float
    queue_p95: float
    queue_max: int
    queue_drops: int
    queue_marks: int
    losses: int


class Convergence(Record):
    """How soon shares were equal after a change."""

    at_s: float
    kind: str
    busy_hosts: int
    lasts_s: float
    equal_after_s: float
    equal_share: float


class HostPolicy(Record):
    """What the agent of a host did."""

    host: int
    policy: str
    beacons_sent: int
    beacons_heard: int
    beacons_rejected: int
    terminals_max: int
    control_enabled_at_s: float | None
    bounds_changed: int


class Policies(Record):
    """What the agents did."""

    beacons_sent: int
    beacons_heard: int
    beacons_rejected: int
    control_enabled_at_s: float | None
    bounds_changed: int
    hosts: list[HostPolicy]


class StateShares(Record):
    """Share of the samples in each congestion-avoidance state."""

    open: float
    disorder: float
    cwr: float
    recovery: float
    loss: float


class LastLink(Record):
    """What the law `lastlink` made of a client's reports."""

    ignored_losses: int
    heeded_losses: int
    initial_segments: int | None


class Flow(Record):
    """A connection of one of the `runs` of a `Case`."""

    id: int
    host: int
    direction: str
    kind: str
    congestion_control: str | None
    policy: str
    always_busy: bool
    goodput_mbps: float
    rtt_ms: Distribution | None
    rtt_per_ack_ms: Distribution | None
    cwnd_mean: float | None
    state_shares: StateShares | None
    retransmits: int
    timeouts: int | None
    delivered_ce: int
    controlled_share: float
    started_s: float
    last_link: LastLink | None
    messages: int
    undelivered: int
    message_ms: Distribution | None
    datagrams: Datagrams | None
    video: Videos | None


class Run(Record):
    """One run of a `Case`: a whole `result.json`, with its `flows` as records."""

    schema_version: int
    scenario: Keys
    hosts_kind: str
    seed: int
    version: str
    commit: str | None
    dirty: bool
    duration_s: float
    warmup_s: float
    aggregate_goodput_mbps: float
    fairness_flows: int
    jain_index: float | None
    starved_flows: int
    rtt_ms: Distribution | None
    rtt_per_ack_ms: Distribution | None
    messages: Deliveries | None
    transfers: Deliveries | None
    slowdowns: list[Slowdown]
    pings: Datagrams | None
    datagrams: Datagrams | None
    videos: Videos | None
    utilization: float
    access: Access
    cells: list[AccessPoint]
    nodes: list[Node]
    roams: list[Roam]
    links: list[Link]
    flows: list[Flow]
    convergence: list[Convergence]
    policies: Policies
    kernel_release: str | None
    clock: str | None
    kernel: str | None
    kernel_digest: str | None
    emulator: str | None
    wifi: str | None
    queue: str | None
    wall_s: float
    events: int
    simulated_s_per_wall_s: float
    lateness_us: Lateness | None
    machine_turnaround_us: Lateness | None
    valid: bool
    invalid_reasons: list[str]
    invalid_kinds: list[str]
    notes: list[str]


class Interval(Record):
    """A 95 % confidence interval."""

    low: float
    high: float


class Spread(Record):
    """A figure over the runs of a case, each with its own seed (docs/guide/result-measures.md#over-several-seeds)."""

    mean: float
    min: float
    max: float
    seeds: int
    deviation: float | None
    ci95: Interval | None


class DeliverySummary(Record):
    """Messages or transfers over the runs of a case."""

    delivered: Spread
    undelivered: Spread
    mean_ms: Spread | None
    p95_ms: Spread | None


class DatagramSummary(Record):
    """Datagrams over the runs of a case."""

    lost_share: Spread | None
    mean_ms: Spread | None
    p95_ms: Spread | None
    jitter_ms: Spread | None


class VideoSummary(Record):
    """Videos over the runs of a case."""

    mean_bit_rate_mbps: Spread | None
    stalls: Spread
    stalled_s: Spread


class Summary(Record):
    """The headline figures of a case over its runs."""

    aggregate_goodput_mbps: Spread
    fairness_flows: Spread | None
    jain_index: Spread | None
    starved_flows: Spread
    rtt_min_ms: Spread | None
    rtt_mean_ms: Spread | None
    rtt_p95_ms: Spread | None
    rtt_per_ack_mean_ms: Spread | None
    rtt_per_ack_p95_ms: Spread | None
    downlink_drops: Spread
    utilization: Spread
    controlled_share: Spread
    messages: DeliverySummary | None
    transfers: DeliverySummary | None
    pings: DatagramSummary | None
    datagrams: DatagramSummary | None
    videos: VideoSummary | None


class Setting(Record):
    """A varied key with its value in a case."""

    key: str
    value: str


class Varied(Record):
    """A varied key with its values as typed."""

    key: str
    values: list[str]


class Case(Record):
    """All runs that differ in the seed only."""

    label: str
    settings: list[Setting]
    summary: Summary
    runs: list[Run]


class Coordinate(Record):
    """The value of an axis."""

    axis: str
    value: float | str


class Axis(Record):
    """An axis of a study, or its cases."""

    axis: str
    label: str
    keys: list[str]
    values: list[float | str]


class Measure(Record):
    """A measure at a point."""

    measure: str
    values: list[float | None]
    mean: float | None
    deviation: float | None
    ci95: Interval | None


class Tried(Record):
    """A value that a search tried."""

    value: float
    maximised: float | None
    conditions: list[float | None]
    met: bool


class Found(Record):
    """What a search found."""

    key: str
    value: float
    met: bool
    tried: list[Tried]


class Point(Record):
    """A point of a study."""

    at: list[Coordinate]
    search: Found | None
    hosts_kind: str | None
    measures: list[Measure]


class Mark(Record):
    """A point of a line."""

    x: float | str
    y: float | None
    ci95: Interval | None


class Line(Record):
    """A line of a figure."""

    label: str
    source: str | None
    marks: list[Mark]


class Panel(Record):
    """A panel of a figure."""

    label: str
    lines: list[Line]
    references: list[Line]


class Figure(Record):
    """A figure of a study."""

    title: str
    x_label: str
    y: str
    y_label: str
    log_x: bool
    log_y: bool
    panels: list[Panel]


class Condition(Record):
    """A condition on the cells of a claim."""

    label: str
    value: str
    at_least: float | None
    at_most: float | None
    within: float | None


class Cell(Record):
    """A cell of a claim."""

    at: list[Coordinate]
    numbers: list[float | None]
    met: bool


class Claim(Record):
    """The verdict on a claim."""

    id: str
    text: str
    source: str
    reading: str | None
    at: list[Coordinate]
    value: str
    conditions: list[Condition]
    cells: list[Cell]
    among: list[Condition]
    left_out: int
    paper: float | None
    at_least: float | None
    at_most: float | None
    within: float | None
    required: bool
    ours: float | None
    ci95: Interval | None
    verdict: str
    clear: bool
    problem: str | None
