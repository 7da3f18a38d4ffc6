//! The command from outside, in one binary.

mod agent_command;
mod agent_output;
mod built_in;
mod command_line;
mod common;
mod demo;
mod differential;
mod exec;
mod export;
mod external;
mod house;
mod kernel_hosts;
mod kernel_hosts_last_link;
mod kernel_hosts_laws;
mod kernel_hosts_traffic;
mod laws_command;
mod out_folder;
mod own_laws;
mod studies;
mod tables;
mod top;
mod traces;
mod trials;
mod view;
