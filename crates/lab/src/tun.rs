//! TUN devices: the network interfaces of the hosts. The medium reads and writes their packets.

use crate::error::{Doing, Result};
use crate::gro::{self, Gro};
use crate::netlink::{self, Netlink};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::RouteMetric;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The interface name in every host's namespace.
pub const INTERFACE: &str = "lh0";

/// The largest IP packet of a device. Without IFF_VNET_HDR the kernel segments before the device.
pub(crate) const MTU: usize = 1500;

/// The settings of a device.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Each with the length of its prefix.
    pub(crate) addresses: Vec<(IpAddr, u8)>,
    /// Packets that the kernel queues until we read them. Beyond that it drops the newest.
    pub(crate) queue_packets: u32,
    /// The metrics of the default routes, one for each family of the addresses.
    pub(crate) metrics: Vec<RouteMetric>,
    /// Whether the kernel joins segments that it is given.
    pub(crate) gro: Option<Gro>,
    /// The most segments of TCP in a packet of the kernel, before they are parted; `None`: 64 KiB.
    pub(crate) gso_segments: Option<u32>,
}

/// A TUN device, up, with addresses and default routes. It disappears with its file descriptor.
#[derive(Debug)]
pub(crate) struct Tun {
    file: File,
    gro: Option<Gro>,
}

impl Tun {
    /// Creates the device in the calling thread's namespace.
    ///
    /// # Errors
    /// If there is no /dev/net/tun, or the caller may not use it (CAP_NET_ADMIN).
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .doing("cannot open /dev/net/tun (the kernel needs CONFIG_TUN; 'modprobe tun' loads it)")?;
        attach(&file, settings.gro.is_some())
            .doing("cannot make a TUN device (is /dev/net/tun the real one: 'mknod /dev/net/tun c 10 200'?)")?;
        let index = nix::net::if_::if_nametoindex(INTERFACE).doing("the new TUN device has no index")?;
        let mut netlink = Netlink::open()?;
        // What is bound to no address answers from the first one: the kernel takes the IPv4 address that was added
        // first, and the IPv6 address that was added last.
        let (four, six): (Vec<_>, Vec<_>) = settings.addresses.iter().partition(|(address, _)| address.is_ipv4());
        for &(address, prefix_length) in four.into_iter().chain(six.into_iter().rev()) {
            netlink.add_address(index, address, prefix_length)?;
        }
        netlink.bring_up(index, settings.queue_packets)?;
        netlink.queue_plainly(index)?;
        settings.gso_segments.map_or(Ok(()), |segments| netlink.limit_gso(index, segments))?;
        if let Some(gro) = settings.gro {
            netlink.limit_gro(index, gro.below_bytes)?;
            gro::wait_for_the_burst()?;
        }
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            if settings.addresses.iter().any(|&(address, _)| netlink::family(address) == family) {
                netlink.add_default_route(index, family, settings.metrics.clone())?;
            }
        }
        Ok(Self { file, gro: settings.gro })
    }

    /// Reads the oldest packet from the host; `None` if there is none.
    pub(crate) fn read(&self, buffer: &mut [u8; MTU]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(length) => {
                if let Some(gro) = self.gro {
                    gro.unmark(&mut buffer[..length]);
                }
                Ok(Some(length))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a packet to the host. Returns `false` if the kernel rejects it (it drops malformed packets).
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<bool> {
        match (&self.file).write(packet) {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// TUNSETIFF: turns the open file into the device [`INTERFACE`], with IP packets without a header of our own.
/// `polled`: the kernel takes the packets that we write as a network card's, through NAPI, or else at once.
fn attach(file: &File, polled: bool) -> nix::Result<()> {
    nix::ioctl_write_ptr_bad!(tun_set_iff, libc::TUNSETIFF, libc::ifreq);

    let napi = if polled { libc::IFF_NAPI } else { 0 };
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI | napi) as libc::c_short,
        },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(INTERFACE.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the descriptor is open and the request is a whole ifreq that outlives the call.
    #[allow(unsafe_code)]
    unsafe {
        tun_set_iff(file.as_raw_fd(), &raw const request)?;
    }
    Ok(())
}
