//! What stands for TLS 1.3: messages of its sizes, and packets with room for its tags, but nothing is encrypted. So a run needs no
//! random keys, and the sizes of packets depend on nothing but the scenario.
//!
//! | message | bytes | as |
//! | --- | ---: | --- |
//! | ClientHello | 300 | with one key share of X25519; the client pads its datagram to 1200 bytes anyway (RFC 9000 §14.1) |
//! | ServerHello | 90 | the same group (RFC 8446 §4.1.3) |
//! | EncryptedExtensions to Finished | 2400 | a chain of 2 kB: two certificates with keys on P-256; transport parameters, a signature, a MAC |
//! | the client's Finished | 36 | HMAC-SHA256 (RFC 8446 §4.4.4) |
//!
//! The server's flight stays below three times what the client has sent, as RFC 9000 §8.1 demands. That holds for two thirds of
//! servers (M. Nawrocki and others, *On the Interplay between TLS Certificates and QUIC Performance*, CoNEXT 2022); the others need
//! one round trip more.
//!
//! A tag is as long as AES-GCM's, and holds the number of its key instead of a digest. A packet of another key is rejected as one that
//! does not decrypt.

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair,
    Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};
use std::any::Any;
use std::sync::Arc;

const CLIENT_HELLO: usize = 300;
const SERVER_HELLO: usize = 90;
const SERVER_FLIGHT: usize = 2_400;
const CLIENT_FINISHED: usize = 36;
/// That of AES-GCM (RFC 9001 §5.3).
const TAG: usize = 16;

/// The keys in their order: Initial, Handshake, and 1-RTT from this one on.
const INITIAL_KEY: u64 = 0;
const HANDSHAKE_KEY: u64 = 1;

/// All of the cryptography of an endpoint.
#[derive(Debug)]
pub(crate) struct Plain;

/// What has been written so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Nothing,
    /// The client's ClientHello, or the server's ServerHello.
    Hello,
    /// All of it.
    All,
}

struct PlainSession {
    side: Side,
    /// Ours, as they go into our message.
    parameters: Vec<u8>,
    written: Written,
    read: Vec<u8>,
    key: u64,
}

impl PlainSession {
    fn new(side: Side, parameters: &TransportParameters) -> Self {
        let mut bytes = vec![0; 2];
        parameters.write(&mut bytes);
        let length = (bytes.len() - 2) as u16;
        bytes[..2].copy_from_slice(&length.to_be_bytes());
        Self { side, parameters: bytes, written: Written::Nothing, read: Vec::new(), key: HANDSHAKE_KEY }
    }

    /// The message that carries our parameters.
    fn with_parameters(&self, size: usize, out: &mut Vec<u8>) {
        let end = out.len() + size;
        out.extend(&self.parameters);
        assert!(out.len() <= end, "the transport parameters have room in their message");
        out.resize(end, 0);
    }

    /// How many bytes the other end sends in all, and where its parameters begin.
    fn theirs(&self) -> (usize, usize) {
        if self.side.is_client() {
            (SERVER_HELLO + SERVER_FLIGHT, SERVER_HELLO)
        } else {
            (CLIENT_HELLO + CLIENT_FINISHED, 0)
        }
    }
}

impl Session for PlainSession {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys(INITIAL_KEY)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.read.len() < self.theirs().0 || self.written != Written::All
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.read.extend(bytes);
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(message) = self.read.get(self.theirs().1..) else { return Ok(None) };
        let Some((length, rest)) = message.split_first_chunk() else { return Ok(None) };
        let Some(mut parameters) = rest.get(..u16::from_be_bytes(*length).into()) else { return Ok(None) };
        Ok(Some(TransportParameters::read(self.side, &mut parameters)?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let read = self.read.len();
        match (self.side, self.written) {
            (Side::Client, Written::Nothing) => {
                self.with_parameters(CLIENT_HELLO, out);
                self.written = Written::Hello;
                return None;
            }
            (Side::Client, Written::Hello) if self.key == HANDSHAKE_KEY && read >= SERVER_HELLO => {}
            (Side::Client, Written::Hello) if self.key > HANDSHAKE_KEY && read >= SERVER_HELLO + SERVER_FLIGHT => {
                out.resize(out.len() + CLIENT_FINISHED, 0);
                self.written = Written::All;
            }
            (Side::Server, Written::Nothing) if read >= CLIENT_HELLO => {
                out.resize(out.len() + SERVER_HELLO, 0);
                self.written = Written::Hello;
            }
            (Side::Server, Written::Hello) => {
                self.with_parameters(SERVER_FLIGHT, out);
                self.written = Written::All;
            }
            _ => return None,
        }
        self.key += 1;
        Some(keys(self.key - 1))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.key += 1;
        Some(keys(self.key - 1).packet)
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl ClientConfig for Plain {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(PlainSession::new(Side::Client, parameters)))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(INITIAL_KEY))
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        unreachable!("a simulated server sends no Retry")
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Box::new(PlainSession::new(Side::Server, parameters))
    }
}

/// The keys of this number, the same for both sides.
fn keys(number: u64) -> Keys {
    let header = || Box::new(NoKey) as Box<dyn HeaderKey>;
    let packet = || Box::new(Numbered(number)) as Box<dyn PacketKey>;
    Keys {
        header: KeyPair { local: header(), remote: header() },
        packet: KeyPair { local: packet(), remote: packet() },
    }
}

struct Numbered(u64);

impl Numbered {
    fn tag(&self) -> [u8; TAG] {
        u128::from(self.0).to_be_bytes()
    }
}

impl PacketKey for Numbered {
    fn encrypt(&self, _: u64, packet: &mut [u8], _: usize) {
        let tag = packet.len() - TAG;
        packet[tag..].copy_from_slice(&self.tag());
    }

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let end = payload.len().checked_sub(TAG).filter(|end| payload[*end..] == self.tag()).ok_or(CryptoError)?;
        payload.truncate(end);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    /// RFC 9001 §6.6, of AES-GCM.
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

struct NoKey;

impl HeaderKey for NoKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    /// RFC 9001 §5.4.2.
    fn sample_size(&self) -> usize {
        16
    }
}

/// Of stateless resets: the token is the connection ID, with ones behind it, as no tag of a packet has.
impl HmacKey for Plain {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        out.fill(0xff);
        let length = data.len().min(out.len() / 2);
        out[..length].copy_from_slice(&data[..length]);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }
}

/// Of the tokens that validate an address: there are none.
impl HandshakeTokenKey for Plain {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        unreachable!("a simulated server sends no token")
    }
}
