//! The kernel's state of one connection: `TCP_INFO`.

use nix::libc;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd};

/// `struct tcp_info` of a connected socket (linux/tcp.h), and how many bytes of it this kernel fills. An older kernel
/// fills less; the rest is zero.
///
/// # Errors
/// If it is no TCP socket.
pub fn tcp_info(socket: impl AsFd) -> io::Result<(libc::tcp_info, usize)> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = mem::size_of::<libc::tcp_info>() as libc::socklen_t;
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: the buffer is as long as `length` says, and the kernel writes no more than that.
    #[allow(unsafe_code)]
    let status = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, info.as_mut_ptr().cast(), &raw mut length)
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: its members are integers, zeroed before the kernel wrote some of them.
    #[allow(unsafe_code)]
    Ok((unsafe { info.assume_init() }, length as usize))
}
