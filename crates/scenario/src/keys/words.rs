//! Enums whose variants are words of the file, and which a typed scenario has too.

use lasthop_keys::words;

words! {
    /// Which stack's defaults a host has.
    pub enum Era {
        /// No TCP small queues, no pacing, no RACK, big device queues.
        Y2012 = "2012",
        /// Linux today.
        Modern = "modern",
    }

    /// What a host's agent does.
    pub enum AgentMode {
        /// There is none.
        Off = "off",
        /// It looks.
        Observe = "observe",
        /// It looks and decides, and changes nothing.
        Advise = "advise",
        /// It controls.
        Control = "control",
    }

    /// Who sends the data of a connection.
    pub enum Direction {
        /// The host.
        Up = "up",
        /// The server.
        Down = "down",
    }

    /// What a host knows of its own link.
    pub enum Knowledge {
        /// Bandwidth and error rate.
        Both = "both",
        /// The bandwidth alone.
        Bandwidth = "bandwidth",
        /// The error rate alone.
        ErrorRate = "error-rate",
        /// What its agent measures.
        Measured = "measured",
    }
}
