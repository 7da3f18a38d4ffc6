//! Queues of packets: the drop-tail queue, [`Fifo`].

mod fifo;

pub(crate) use fifo::Fifo;
