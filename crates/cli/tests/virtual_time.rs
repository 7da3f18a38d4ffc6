//! The command with kernel hosts in virtual time. A busy machine changes nothing in it, so these tests take what others leave of the
//! processors.

mod common;
mod differential;
mod guests;
mod kernel_hosts_last_link;
mod kernel_hosts_runs;
mod kernel_hosts_traffic;
mod laws_in_guests;
mod linux_queue;
mod pace;
mod replays;
