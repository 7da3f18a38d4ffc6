//! The command from outside. Its kernel hosts are this machine's, in real time: those in virtual time have a binary of their own.

mod agent_command;
mod agent_output;
mod built_in;
mod command_line;
mod common;
mod demo;
mod exec;
mod export;
mod external;
mod house;
mod kernel_hosts;
mod kernel_hosts_laws;
mod laws_command;
mod out_folder;
mod own_laws;
mod studies;
mod tables;
mod top;
mod traces;
mod trials;
mod view;
