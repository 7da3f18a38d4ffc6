//! Metrics in the encoders of prometheus-client.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Unit;
use std::fmt;

/// A metric of its own: a name without unit and suffix, what it is, its unit, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    name: &'static str,
    help: &'static str,
    unit: &'static str,
    value: OfType,
}

#[derive(Clone, Debug)]
enum OfType {
    Gauge(Option<f64>),
    Counter(Option<f64>),
    Histogram(Histogram),
}

impl Number {
    /// What goes up and down.
    pub(crate) fn gauge(name: &'static str, help: &'static str, unit: &'static str, value: impl Into<Value>) -> Self {
        Self { name, help, unit, value: OfType::Gauge(value.into().0) }
    }

    /// What is counted since the agent's start.
    pub(crate) fn counter(name: &'static str, help: &'static str, unit: &'static str, value: impl Into<Value>) -> Self {
        Self { name, help, unit, value: OfType::Counter(value.into().0) }
    }

    /// How often a value lay where.
    pub(crate) fn histogram(name: &'static str, help: &'static str, unit: &'static str, value: &Histogram) -> Self {
        Self { name, help, unit, value: OfType::Histogram(value.clone()) }
    }
}

/// Numbers of gauges and counters; `None`: no value. f64 is exact up to 2^53, which 9 PB of payload exceed.
pub(crate) struct Value(Option<f64>);

macro_rules! value_from {
    ($($number:ty => $convert:expr),*) => {
        $(
            impl From<$number> for Value {
                fn from(number: $number) -> Self {
                    Self(Some($convert(number)))
                }
            }
        )*
    };
}
value_from!(bool => f64::from, u32 => f64::from, u64 => |number| number as f64, f64 => |number| number);

impl<T> From<Option<T>> for Value
where
    Self: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self(None), Self::from)
    }
}

/// Writes metrics. An empty unit is none.
pub(super) struct Writer<'e>(pub(super) DescriptorEncoder<'e>);

impl Writer<'_> {
    pub(super) fn info(&mut self, name: &str, help: &str, labels: &[(&'static str, &str)]) -> fmt::Result {
        let labels: Vec<_> = labels.iter().map(|(label, value)| (*label, (*value).to_owned())).collect();
        let info = Info::new(labels);
        info.encode(self.0.encode_descriptor(name, help, None, MetricType::Info)?)
    }

    pub(super) fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        unit: &'static str,
        value: impl Into<Value>,
    ) -> fmt::Result {
        self.number(&Number::gauge(name, help, unit, value))
    }

    pub(super) fn gauges<'w>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'w str, u32)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values
            .into_iter()
            .try_for_each(|(word, value)| ConstGauge::new(value).encode(encoder.encode_family(&[(label, word)])?))
    }

    pub(super) fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        unit: &'static str,
        value: impl Into<Value>,
    ) -> fmt::Result {
        self.number(&Number::counter(name, help, unit, value))
    }

    pub(super) fn counters<'v>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'v str, u64)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        values
            .into_iter()
            .try_for_each(|(word, value)| ConstCounter::new(value).encode(encoder.encode_family(&[(label, word)])?))
    }

    pub(super) fn number(&mut self, number: &Number) -> fmt::Result {
        let Number { name, help, unit, value } = number;
        let unit = (!unit.is_empty()).then(|| Unit::Other((*unit).to_owned()));
        let kind = match value {
            OfType::Gauge(_) => MetricType::Gauge,
            OfType::Counter(_) => MetricType::Counter,
            OfType::Histogram(_) => MetricType::Histogram,
        };
        let encoder = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        match value {
            OfType::Gauge(Some(value)) => ConstGauge::new(*value).encode(encoder),
            OfType::Counter(Some(value)) => ConstCounter::new(*value).encode(encoder),
            OfType::Gauge(None) | OfType::Counter(None) => Ok(()),
            OfType::Histogram(value) => value.encode(encoder),
        }
    }
}
