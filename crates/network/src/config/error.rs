//! What is wrong with a configuration: each field that can be is a variant, so that the room of the files names its key.
#![allow(missing_docs, reason = "the fields have their docs in the configuration")]

use strum::{Display, EnumIter};

/// An invalid network.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field} is {value}; accepted: {accepted}")]
pub struct ConfigError<F: std::fmt::Display = Field> {
    /// The field with the error.
    pub field: F,
    /// Its value.
    pub value: String,
    /// The accepted values.
    pub accepted: String,
}

/// A field of a network that can be invalid. Displayed as its path in [`Config`](crate::Config).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumIter)]
pub enum Field {
    /// Of the network as a whole.
    #[strum(to_string = "{0}")]
    Network(NetworkField),
    /// Of a host, by its number.
    #[strum(to_string = "hosts[{0}].{1}")]
    Host(usize, HostField),
    /// Of a shared 802.11 medium.
    #[strum(to_string = "access.{0}")]
    Wifi(WifiField),
    /// Of a shared wired link.
    #[strum(to_string = "access.{0}")]
    Wired(DirectionField),
    /// Of the path behind the access.
    #[strum(to_string = "path.{0}")]
    Path(PathField),
    /// Of a link, by its number.
    #[strum(to_string = "links[{0}].{1}")]
    Link(usize, LinkField),
    /// Of a change, by its place in [`Config::changes`](crate::Config::changes).
    #[strum(to_string = "changes[{0}].{1}")]
    Change(usize, ChangeField),
}

/// A field of [`Config`](crate::Config) or [`LinksConfig`](crate::LinksConfig).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum NetworkField {
    #[default]
    Hosts,
    Nodes,
    Attached,
    Links,
    Cells,
}

/// A field of [`HostConfig`](crate::HostConfig).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum HostField {
    #[default]
    QueuePackets,
    Standard,
    Rate,
    Mcs,
    Width,
    SpatialStreams,
    SnrDb,
    FrameErrorRate,
    Path,
    PathJitter,
    #[strum(to_string = "path.rtt")]
    PathRtt,
    Turnaround,
}

/// A field of [`WifiConfig`](crate::WifiConfig) or of its [`Modulation`](crate::Modulation).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum WifiField {
    #[default]
    Band,
    Rate,
    #[strum(to_string = "modulation.mcs")]
    Mcs,
    #[strum(to_string = "modulation.spatial_streams")]
    SpatialStreams,
    #[strum(to_string = "modulation.width")]
    Width,
    #[strum(to_string = "modulation.guard_interval")]
    GuardInterval,
    RateControl,
    #[strum(to_string = "access_point_queue{0}")]
    AccessPointQueue(QueueField),
    AggregateFrames,
    MaxPpdu,
    AmsduBytes,
    StartSpacing,
    RtsThreshold,
    RtsOnRetry,
    AccessPointWindow,
    AccessPointTxop,
    ProtectionRate,
    BroadcastRate,
}

/// A field of [`PathConfig`](crate::PathConfig).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum PathField {
    #[default]
    QueuePackets,
    Rate,
    #[strum(to_string = "impairments.loss_burst")]
    LossBurst,
    #[strum(to_string = "impairments.back.loss_burst")]
    BackLossBurst,
}

/// A field of [`LinkConfig`](crate::LinkConfig).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum LinkField {
    #[default]
    Ends,
    #[strum(to_string = "forth.{0}")]
    Forth(DirectionField),
    #[strum(to_string = "back.{0}")]
    Back(DirectionField),
}

/// A field of [`DirectionConfig`](crate::DirectionConfig) or [`WiredAccessConfig`](crate::WiredAccessConfig).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum DirectionField {
    #[default]
    Rate,
    #[strum(to_string = "queue{0}")]
    Queue(QueueField),
    #[strum(to_string = "impairments.loss_burst")]
    LossBurst,
}

/// A field of [`QueueConfig`](crate::QueueConfig).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Display, EnumIter)]
pub enum QueueField {
    /// The queueing discipline.
    #[default]
    #[strum(to_string = "")]
    Discipline,
    /// The limit in packets.
    #[strum(to_string = ".packets")]
    Packets,
    /// A parameter of the discipline, by its name.
    #[strum(to_string = ".{0}")]
    Parameter(&'static str),
}

/// A field of [`Change`](crate::Change) or [`Changed`](crate::Changed).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum ChangeField {
    #[default]
    What,
    Link,
    Host,
    Rate,
    Mcs,
    FrameErrorRate,
    SnrDb,
    Opportunities,
}

impl<F: std::fmt::Display> ConfigError<F> {
    /// The same error, of a configuration that has this one as a part.
    pub(crate) fn of<Whole: std::fmt::Display>(whole: impl Fn(F) -> Whole) -> impl Fn(Self) -> ConfigError<Whole> {
        move |Self { field, value, accepted }| ConfigError { field: whole(field), value, accepted }
    }
}
