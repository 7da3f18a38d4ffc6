//! Where quinn cannot ask for the time, nobody can make an end: who asks [`IS_THERE`](crate::IS_THERE) first does not try.

use crate::{Config, Datagram, Info};
use lasthop_units::{Ecn, Time};
use std::convert::Infallible;

/// An end that there is none of. Its methods are those of the other one.
#[derive(Debug)]
pub struct End(Infallible);

#[expect(missing_docs, reason = "they have their words where there is an end")]
impl End {
    /// # Panics
    /// Always.
    pub fn connect(_: Time, _: &Config, _: [u8; 32]) -> Self {
        unreachable!("QUIC is not there, and IS_THERE says so")
    }

    /// # Panics
    /// Always.
    pub fn listen(_: &Config, _: [u8; 32]) -> Self {
        unreachable!("QUIC is not there, and IS_THERE says so")
    }

    pub fn on_datagram(&mut self, _: Time, _: Datagram, _: Ecn) {
        match self.0 {}
    }

    pub fn on_timeout(&mut self, _: Time) {
        match self.0 {}
    }

    pub fn on_departed(&mut self) {
        match self.0 {}
    }

    pub fn write(&mut self, _: u64) {
        match self.0 {}
    }

    pub fn write_endless(&mut self) {
        match self.0 {}
    }

    pub fn stop_writing(&mut self) {
        match self.0 {}
    }

    pub fn close(&mut self) {
        match self.0 {}
    }

    pub fn poll_transmit(&mut self, _: Time) -> Option<(Datagram, Ecn)> {
        match self.0 {}
    }

    pub fn next_timeout(&mut self) -> Time {
        match self.0 {}
    }

    pub fn received_bytes(&self) -> u64 {
        match self.0 {}
    }

    pub fn is_established(&self) -> bool {
        match self.0 {}
    }

    pub fn is_closed(&self) -> bool {
        match self.0 {}
    }

    pub fn has_failed(&self) -> bool {
        match self.0 {}
    }

    pub fn info(&self) -> Option<Info> {
        match self.0 {}
    }
}
