//! Reports the agent's state to the service manager: sd_notify(3), as required by `Type=notify-reload` in
//! systemd.service(5).

use crate::clock;
use std::env;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use tracing::debug;

/// The service manager's socket, and whether it restarts an agent that falls silent (`WatchdogSec=`).
#[derive(Debug, Default)]
pub struct Notify {
    ear: Option<(UnixDatagram, SocketAddr)>,
    watches: bool,
}

impl Notify {
    /// The service manager that started this process and set `NOTIFY_SOCKET`. Without one, every call does nothing.
    pub fn from_environment() -> Self {
        let watches = env::var_os("WATCHDOG_USEC").is_some();
        env::var_os("NOTIFY_SOCKET").map_or_else(Self::default, |address| Self { watches, ..Self::to(&address) })
    }

    /// `address` is a path, or `@` and the name of an abstract socket.
    pub fn to(address: &OsStr) -> Self {
        let address = match address.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(address),
        };
        let ear = address.and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            Ok((socket, address))
        });
        let ear = ear.inspect_err(|error| debug!("the service manager cannot be told anything: {error}")).ok();
        Self { ear, watches: false }
    }

    /// Whether a service manager listens.
    pub const fn is_heard(&self) -> bool {
        self.ear.is_some()
    }

    pub(crate) fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// The configuration is being reread, until [`Notify::ready`].
    pub(crate) fn reloading(&self) {
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", clock::monotonic().as_nanos() / 1000));
    }

    /// A tick is done. A service manager that watches (sd_watchdog_enabled(3)) restarts an agent that does none for
    /// `WatchdogSec=`, which is to be three times the longest tick of 10 s or more.
    pub(crate) fn alive(&self) {
        if self.watches {
            self.send("WATCHDOG=1");
        }
    }

    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Never waits: an absent service manager must not disturb the agent.
    fn send(&self, text: &str) {
        if let Some((socket, address)) = &self.ear
            && let Err(error) = socket.send_to_addr(text.as_bytes(), address)
        {
            debug!("the service manager was not told {text:?}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_manager_is_told_what_systemd_asks_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).expect("a socket");
        let notify = Notify::to(path.as_os_str());
        assert!(notify.is_heard());
        notify.ready("mode advise");
        notify.alive(); // nobody watches
        notify.reloading();
        Notify { watches: true, ..Notify::to(path.as_os_str()) }.alive();
        notify.stopping();
        let mut buffer = [0; 256];
        let mut next = || {
            let length = manager.recv(&mut buffer).expect("a datagram");
            String::from_utf8_lossy(&buffer[..length]).into_owned()
        };
        assert_eq!(next(), "READY=1\nSTATUS=mode advise");
        let reloading = next();
        let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("when it began");
        assert!(since.parse::<u64>().expect("a number") <= clock::monotonic().as_nanos() / 1000);
        assert_eq!(next(), "WATCHDOG=1");
        assert_eq!(next(), "STOPPING=1");
    }

    #[test]
    fn an_abstract_socket_is_reached_and_without_a_service_manager_nobody_is_told() {
        let name = format!("lasthop-test-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let manager = UnixDatagram::bind_addr(&address).expect("a socket");
        Notify::to(OsStr::new(&format!("@{name}"))).stopping();
        let mut buffer = [0; 16];
        assert_eq!(manager.recv(&mut buffer).expect("a datagram"), "STOPPING=1".len());
        assert!(!Notify::default().is_heard());
        Notify::default().stopping();
    }
}
