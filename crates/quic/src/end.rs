//! An end, by quinn.

use crate::controller::{Counts, Factory};
use crate::marks;
use crate::plain::Plain;
use crate::{Config, Datagram, Info, LEAST_DATAGRAM, SOCKET_DATAGRAMS};
use bytes::BytesMut;
use lasthop_laws::Marking;
use lasthop_units::{Bytes, Ecn, Span, Time};
use quinn_proto::{
    ClientConfig, ConnectionError, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir,
    EndpointConfig, Event, MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The other end, whatever its address: none ever changes.
const OTHER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 443));
/// What an endless writer writes at once.
static ZEROS: [u8; 1 << 14] = [0; 1 << 14];
/// Connection IDs, as long as quinn's.
const ID_BYTES: usize = 8;
/// As of a writer without end.
const ENDLESS: u64 = u64::MAX;
/// What an application writes ahead of twice the window.
const AHEAD: u64 = 1 << 16;

/// One end of a connection. Methods are of four kinds, as those of `lasthop_tcp::Endpoint`:
///
/// - events in: [`on_datagram`](Self::on_datagram), [`on_timeout`](Self::on_timeout), [`on_departed`](Self::on_departed);
/// - the application: [`write`](Self::write), [`write_endless`](Self::write_endless), [`stop_writing`](Self::stop_writing),
///   [`close`](Self::close);
/// - actions out: after any of these [`poll_transmit`](Self::poll_transmit) until it gives nothing, then
///   [`next_timeout`](Self::next_timeout);
/// - questions: [`info`](Self::info) and others.
pub struct End {
    endpoint: quinn_proto::Endpoint,
    /// A server has none before the first datagram.
    connection: Option<(ConnectionHandle, quinn_proto::Connection)>,
    counts: Arc<Counts>,
    send_buffer: u64,
    /// Whether datagrams may be marked, and whether they are of L4S.
    ecn: bool,
    is_l4s: bool,
    /// The start of the run.
    base: Instant,
    is_established: bool,
    has_failed: bool,
    /// The stream that this end writes.
    writes: Option<StreamId>,
    /// Not yet written to it.
    unwritten: u64,
    /// No more will be written than that.
    closing: bool,
    finished: bool,
    /// The stream that it reads.
    reads: Option<StreamId>,
    received: u64,
    /// To its end.
    has_read_all: bool,
    in_socket: usize,
    /// The law's pace lets the next datagram go then.
    paced_until: Time,
    /// An answer without a connection.
    answer: Option<Vec<u8>>,
}

impl End {
    /// The client's end: the first [`poll_transmit`](Self::poll_transmit) returns its Initial packet.
    pub fn connect(now: Time, config: &Config, seed: [u8; 32]) -> Self {
        let mut end = Self::new(config, seed, |_| None);
        let mut client = ClientConfig::new(Arc::new(Plain));
        client.transport_config(transport(config, seed, &end.counts));
        client.token_store(Arc::new(quinn_proto::NoneTokenStore));
        // As long as quinn's.
        client.initial_dst_cid_provider(Arc::new(|| ConnectionId::new(&[0x5a; 20])));
        let connected = end.endpoint.connect(end.at(now), client, OTHER, "server");
        end.connection = Some(connected.expect("an endpoint has room for its first connection"));
        end
    }

    /// The server's end, which waits for a client.
    pub fn listen(config: &Config, seed: [u8; 32]) -> Self {
        Self::new(config, seed, |transport| {
            let mut server = ServerConfig::new(Arc::new(Plain), Arc::new(Plain));
            server.transport_config(transport);
            Some(Arc::new(server))
        })
    }

    fn new(
        config: &Config,
        seed: [u8; 32],
        server: impl FnOnce(Arc<TransportConfig>) -> Option<Arc<ServerConfig>>,
    ) -> Self {
        let counts = Arc::new(Counts::default());
        let mut endpoint = EndpointConfig::new(Arc::new(Plain));
        endpoint.rng_seed(Some(seed)).cid_generator(|| Box::new(Counter(0)));
        let server = server(transport(config, seed, &counts));
        Self {
            endpoint: quinn_proto::Endpoint::new(Arc::new(endpoint), server, true, None),
            connection: None,
            counts,
            send_buffer: config.send_buffer.get(),
            ecn: config.ecn || config.law.marking() != Marking::OfHost,
            is_l4s: config.law.marking() == Marking::L4s,
            base: moment(),
            is_established: false,
            has_failed: false,
            writes: None,
            unwritten: 0,
            closing: false,
            finished: false,
            reads: None,
            received: 0,
            has_read_all: false,
            in_socket: 0,
            paced_until: Time::MAX,
            answer: None,
        }
    }

    // Events in.

    /// A datagram has arrived, with this ECN field.
    pub fn on_datagram(&mut self, now: Time, payload: Datagram, field: Ecn) {
        let now = self.at(now);
        if let Some(marked) = self.ecn.then(|| marks::told(&payload, ID_BYTES)).flatten() {
            self.counts.marked.fetch_max(marked, Relaxed);
        }
        let mut answer = Vec::new();
        match self.endpoint.handle(now, OTHER, None, marks::arrived(field), BytesMut::from(payload), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = self.endpoint.accept(incoming, now, &mut answer, None).ok();
            }
            // A repeated Initial of a connection that is over.
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) => self.answer = Some(answer),
            None => {}
        }
        self.take_events(now);
    }

    /// The time returned by [`next_timeout`](Self::next_timeout) has come. Harmless when nothing is due.
    pub fn on_timeout(&mut self, now: Time) {
        let now = self.at(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(now);
        }
        self.take_events(now);
    }

    /// A datagram has left the host's queue, or found it full.
    pub fn on_departed(&mut self) {
        self.in_socket = self.in_socket.saturating_sub(1);
    }

    fn take_events(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.is_established = true,
                Event::ConnectionLost { reason } => {
                    let ended =
                        matches!(reason, ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed);
                    self.has_failed = !ended && !self.has_read_all;
                }
                Event::Stream(StreamEvent::Opened { .. }) => self.reads = connection.streams().accept(Dir::Uni),
                // All of it is acknowledged.
                Event::Stream(StreamEvent::Finished { .. }) => {
                    connection.close(now, VarInt::from_u32(0), Datagram::new())
                }
                _ => {}
            }
        }
        if let Some(stream) = self.reads {
            let mut stream = connection.recv_stream(stream);
            if let Ok(mut chunks) = stream.read(true) {
                loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(chunk)) => self.received += chunk.bytes.len() as u64,
                        Ok(None) => break self.has_read_all = true,
                        // No more has come.
                        Err(_) => break,
                    }
                }
                // What it says goes with the next datagram.
                let _transmit = chunks.finalize();
            }
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    // The application.

    /// The application writes `bytes` bytes more. What the send buffer has no room for waits in the application.
    pub fn write(&mut self, bytes: u64) {
        self.unwritten = self.unwritten.saturating_add(bytes);
    }

    /// The application always has data to write.
    pub fn write_endless(&mut self) {
        self.unwritten = ENDLESS;
    }

    /// An endless writer stops. Data in the send buffer are still sent.
    pub fn stop_writing(&mut self) {
        self.unwritten = 0;
    }

    /// The stream ends with what is written, and the connection when all of it is acknowledged.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Fills the send buffer.
    fn fill_buffer(&mut self) {
        let Some((_, connection)) = self.connection.as_mut().filter(|_| self.is_established && !self.finished) else {
            return;
        };
        if self.writes.is_none() && (self.unwritten > 0 || self.closing) {
            self.writes = connection.streams().open(Dir::Uni);
        }
        let Some(stream) = self.writes else { return };
        let window = connection.congestion_state().metrics().congestion_window;
        connection.set_send_window(window.saturating_mul(2).saturating_add(AHEAD).min(self.send_buffer));
        let mut stream = connection.send_stream(stream);
        while self.unwritten > 0 {
            let size = usize::try_from(self.unwritten).unwrap_or(usize::MAX).min(ZEROS.len());
            let Ok(written) = stream.write_chunks(&mut [Datagram::from_static(&ZEROS[..size])]) else { return };
            if self.unwritten != ENDLESS {
                self.unwritten -= written.bytes as u64;
            }
        }
        if self.closing {
            // It fails if the other end has closed.
            self.finished = stream.finish().is_ok();
        }
    }

    // Actions out.

    /// The UDP payload of the next datagram to send now, and its ECN field.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Datagram, Ecn)> {
        if let Some(answer) = self.answer.take() {
            self.in_socket += 1;
            return Some((answer.into(), Ecn::NotEct));
        }
        self.paced_until = Time::MAX;
        if self.in_socket >= SOCKET_DATAGRAMS {
            return None;
        }
        self.fill_buffer();
        self.counts.gate.now.store(now.as_nanos(), Relaxed);
        let now = self.at(now);
        let (_, connection) = self.connection.as_mut()?;
        let mut payload = Vec::new();
        let transmit = connection.poll_transmit(now, 1, &mut payload);
        self.paced_until = self.counts.gate.wait().map_or(Time::MAX, Time::from_nanos);
        let codepoint = transmit?.ecn.filter(|_| self.ecn);
        self.in_socket += 1;
        Some((payload.into(), marks::sent(codepoint, self.is_l4s)))
    }

    /// When [`on_timeout`](Self::on_timeout) must be called; [`Time::MAX`]: not before another event.
    pub fn next_timeout(&mut self) -> Time {
        let at = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        let nanos = |at: Instant| u64::try_from((at - self.base).as_nanos()).unwrap_or(u64::MAX);
        at.map_or(Time::MAX, |at| Time::from_nanos(nanos(at))).min(self.paced_until)
    }

    // Questions.

    /// Bytes of the stream read by the application.
    pub fn received_bytes(&self) -> u64 {
        self.received
    }

    /// The handshake is complete and the connection is not closed.
    pub fn is_established(&self) -> bool {
        self.is_established && self.connection.as_ref().is_some_and(|(_, connection)| !connection.is_closed())
    }

    /// The connection is over, for whatever reason.
    pub fn is_closed(&self) -> bool {
        self.connection.as_ref().is_some_and(|(_, connection)| connection.is_closed())
    }

    /// It is over without having been closed: nothing came for 30 s, or for three times the probe timeout if that is longer. Who has
    /// read all and misses the word that the connection is closed has not failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The state and counters of this end; `None` before the first datagram at a server.
    pub fn info(&self) -> Option<Info> {
        let (_, connection) = self.connection.as_ref()?;
        let path = connection.stats().path;
        let metrics = connection.congestion_state().metrics();
        let count = |count: &AtomicU64| Bytes::new(count.load(Relaxed));
        Some(Info {
            datagram_bytes: path.current_mtu,
            cwnd: Bytes::new(metrics.congestion_window),
            ssthresh: metrics.ssthresh.filter(|ssthresh| *ssthresh != u64::MAX).map(Bytes::new),
            srtt: span(path.rtt),
            min_rtt: span(path.min_rtt),
            acked: count(&self.counts.acked),
            in_flight: count(&self.counts.in_flight),
            lost_packets: path.lost_packets,
            delivered_ce: self.counts.marked.load(Relaxed),
        })
    }

    /// This moment of the run.
    fn at(&self, now: Time) -> Instant {
        self.base + Duration::from_nanos(now.as_nanos())
    }
}

/// Stands for the start of the run.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no other way to an Instant; nothing but differences to it counts"
)]
fn moment() -> Instant {
    Instant::now()
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

fn transport(config: &Config, seed: [u8; 32], counts: &Arc<Counts>) -> Arc<TransportConfig> {
    let [a, b, c, d, ..] = seed;
    let factory = Factory { law: config.law, seed: u32::from_le_bytes([a, b, c, d]), counts: counts.clone() };
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(config.datagram_bytes);
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(factory))
        .mtu_discovery_config((config.datagram_bytes > LEAST_DATAGRAM).then_some(discovery))
        .stream_receive_window(VarInt::from_u64(config.receive_buffer.get()).unwrap_or(VarInt::MAX))
        .enable_segmentation_offload(false);
    Arc::new(transport)
}

/// Connection IDs, counted: an endpoint has one connection.
struct Counter(u64);

impl ConnectionIdGenerator for Counter {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
