//! Enums with words of the file as variants, shared with the typed scenario.

use lasthop_keys::words;

words! {
    /// The stack whose defaults a host has.
    pub enum Era {
        /// No TCP small queues, no pacing, no RACK, big device queues.
        Y2012 = "2012",
        /// Linux today.
        Modern = "modern",
    }

    /// A host agent's mode.
    pub enum AgentMode {
        /// No agent.
        Off = "off",
        /// It observes.
        Observe = "observe",
        /// It observes and decides, but changes nothing.
        Advise = "advise",
        /// It controls.
        Control = "control",
    }

    /// The sender of a connection's data.
    pub enum Direction {
        /// The host.
        Up = "up",
        /// The server.
        Down = "down",
    }

    /// A host's knowledge of its own link.
    pub enum Knowledge {
        /// Bandwidth and error rate.
        Both = "both",
        /// The bandwidth alone.
        Bandwidth = "bandwidth",
        /// The error rate alone.
        ErrorRate = "error-rate",
        /// Its agent's measurements.
        Measured = "measured",
    }
}
