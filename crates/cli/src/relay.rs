//! `lasthop relay`.

use crate::numbers::whole;
use crate::{stop_on_signals, tell};
use anyhow::{Context, Result};
use clap::Args;
use lasthop_agent::{RELAY_PORT, read_group_key, serve_relay};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct RelayArguments {
    /// The group key: a file that only its owner can read (`lasthop key`), the same as on the hosts
    #[arg(long, value_name = "FILE", default_value = "/etc/lasthop/group.key")]
    group_key_file: PathBuf,
    /// The address on which hosts reach it; without it, all of this machine's
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V6(Ipv6Addr::UNSPECIFIED))]
    listen: IpAddr,
    /// The UDP port
    #[arg(long, default_value_t = RELAY_PORT, value_parser = whole::<u16>(1..=u16::MAX), allow_negative_numbers = true)]
    port: u16,
}

/// `lasthop relay`: passes beacons on until a signal ends it.
pub(crate) fn run(arguments: &RelayArguments) -> Result<ExitCode> {
    let key = read_group_key(&arguments.group_key_file)?;
    let address = SocketAddr::from((arguments.listen, arguments.port));
    let socket = UdpSocket::bind(address).with_context(|| format!("cannot listen on UDP {address}"))?;
    let stop = stop_on_signals()?;
    tell(format_args!("relay on UDP {address}; in [beacon] hosts have `relay = \"ADDRESS\"` and this group key"));
    let done = serve_relay(&socket, key, &stop, |line| tell(format_args!("{line}")))?;
    let refused: Vec<String> = done.refused.iter().map(|(cause, count)| format!("{count} ({cause})")).collect();
    let refused = if refused.is_empty() { "none".to_owned() } else { refused.join(", ") };
    tell(format_args!("datagrams sent: {}, refused: {refused}", done.sent));
    Ok(ExitCode::SUCCESS)
}
