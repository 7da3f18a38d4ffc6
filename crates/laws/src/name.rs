//! The list of laws, from the headers of `include/laws.list`.

use crate::own::OwnLaw;
use crate::parameters::{Parameter, Unit};
use std::fmt;
use std::str::FromStr;

/// For each law of the list, `build.rs` passes its names, looks and parameters.
macro_rules! laws {
    ($({
        $law:ident, $name:ident, $label:literal, $colour:ident, $marker:ident, $where:ident, ($($doc:literal)+),
        $hears:literal, $steers:literal, $marking:ident,
        [$(($unit:ident $parameter:ident $from:literal $to:literal $preset:literal $($meaning:literal)+))*]
    })+) => {
        /// A congestion control.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum LawName {
            $(#[doc = concat!($($doc),+)] $name,)+
            /// A law outside the tree.
            Own(&'static OwnLaw),
        }

        /// The numbers of the laws in C (`enum lh_law_name`).
        enum Number { $($name),+ }

        impl LawName {
            /// Every law of the list.
            pub const ALL: [Self; [$(stringify!($law)),+].len()] = [$(Self::$name),+];

            /// The name in scenarios and results, and on the command line: `cdg-linux`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => {
                        const NAME: [u8; spelled_length(stringify!($law))] = spelled(stringify!($law));
                        match str::from_utf8(&NAME) {
                            Ok(name) => name,
                            Err(_) => panic!("C's names are ASCII"),
                        }
                    })+
                    Self::Own(own) => own.name,
                }
            }

            /// The number in C; a law outside the tree has a list of its own, with itself as number 0.
            pub const fn number(self) -> u32 {
                match self {
                    $(Self::$name => Number::$name as u32,)+
                    Self::Own(_) => 0,
                }
            }

            /// As C writes it: `cdg_linux`.
            pub const fn identifier(self) -> &'static str {
                match self { $(Self::$name => stringify!($law),)+ Self::Own(own) => own.identifier }
            }

            /// The name in the kernel, loaded for everybody: `lh_cdg_linux`.
            pub const fn kernel_name(self) -> &'static str {
                const {
                    $(assert!(
                        !Self::$name.is_for_the_kernel() || stringify!($law).len() <= 12,
                        "names in the kernel have 15 letters at most, and 3 are lh_"
                    );)+
                }
                match self { $(Self::$name => concat!("lh_", stringify!($law)),)+ Self::Own(own) => own.kernel_name }
            }

            /// The label in figures: `CDG (Linux)`.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)+ Self::Own(own) => own.label }
            }

            /// The look in figures. A law outside the tree takes what the others leave.
            pub const fn look(self) -> (Colour, Marker) {
                match self {
                    $(Self::$name => (Colour::$colour, Marker::$marker),)+
                    Self::Own(_) => (Colour::Free, Marker::Circle),
                }
            }

            /// Whether it can be loaded into the kernel (`lasthop-kernel` has an object of it).
            pub const fn is_for_the_kernel(self) -> bool {
                match self {
                    $(Self::$name => matches!(Where::$where, Where::Everywhere),)+
                    Self::Own(own) => own.is_for_the_kernel(),
                }
            }

            /// Whether it uses clients' reports of their last links.
            pub const fn hears_reports(self) -> bool {
                match self { $(Self::$name => $hears,)+ Self::Own(_) => false }
            }

            /// Whether it is of the second form: it sets its window and its pace from samples of the delivery.
            pub fn steers(self) -> bool {
                match self { $(Self::$name => $steers,)+ Self::Own(own) => own.steers() }
            }

            /// What it wants of ECN.
            pub const fn marking(self) -> Marking {
                match self { $(Self::$name => Marking::$marking,)+ Self::Own(own) => own.marking() }
            }

            /// The parameters of the law, in the order of its C struct.
            pub const fn parameters(self) -> &'static [Parameter] {
                match self {
                    $(Self::$name => &[$(Parameter {
                        name: concat!(stringify!($parameter), suffix!($unit)),
                        unit: Unit::$unit,
                        from: $from as f64,
                        to: $to as f64,
                        default: $preset as f64,
                        meaning: concat!($($meaning),+),
                    }),*],)+
                    Self::Own(own) => own.parameters,
                }
            }
        }
    };
}

/// The unit in a parameter's name.
macro_rules! suffix {
    (Milliseconds) => {
        "_ms"
    };
    (Seconds) => {
        "_s"
    };
    ($other:ident) => {
        ""
    };
}

include!(concat!(env!("OUT_DIR"), "/laws.rs"));

/// What a law wants of ECN for its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// What their hosts have.
    OfHost,
    /// Each mark echoed for itself, and all segments markable: RFC 8257 §3.2.
    Each,
    /// Accurate ECN, and ECT(1): RFC 9331.
    L4s,
}

/// Where a law runs.
enum Where {
    /// On simulated hosts only: the kernel has it already, or is not meant to have it.
    Simulated,
    /// In the kernel too.
    Everywhere,
}

/// The colour of a law in figures; `lasthop-report` has the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // they are what they are called
pub enum Colour {
    Blue,
    Vermillion,
    Green,
    Purple,
    Orange,
    Sky,
    Grey,
    Wine,
    Olive,
    Rose,
    /// Any colour left by the others of a figure, with any marker.
    Free,
}

/// The shape of a law's marks in figures, to tell lines apart without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // they are what they are called
pub enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    /// A triangle that stands on its tip.
    Down,
    /// A circle that is not filled.
    Ring,
    /// A square that is not filled.
    Frame,
    /// Two crossing strokes, aslant.
    Cross,
    /// Two crossing strokes, upright.
    Plus,
    /// A triangle that is not filled.
    OpenTriangle,
    /// A diamond that is not filled.
    OpenDiamond,
}

impl LawName {
    /// The laws that can be loaded into the kernel.
    pub fn for_the_kernel() -> impl Iterator<Item = Self> + Clone {
        Self::ALL.into_iter().filter(|law| law.is_for_the_kernel())
    }
}

/// The length of [`spelled`].
const fn spelled_length(name: &str) -> usize {
    let bytes = name.as_bytes();
    if bytes.len() > 3 && matches!(bytes.split_at(bytes.len() - 3).1, b"_pp") { bytes.len() - 1 } else { bytes.len() }
}

/// A C name in other files' spelling: with `-` for `_`, and `++` for `_pp` at its end.
const fn spelled<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    let mut bytes = [b'+'; LENGTH];
    let plain = if LENGTH < name.len() { LENGTH - 2 } else { LENGTH };
    let mut at = 0;
    while at < plain {
        let byte = name.as_bytes()[at];
        bytes[at] = if byte == b'_' { b'-' } else { byte };
        at += 1;
    }
    bytes
}

impl fmt::Display for LawName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// No law has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no law is called {0:?}; there are {list}", list = LawName::ALL.map(LawName::as_str).join(", "))]
pub struct UnknownLaw(pub String);

impl FromStr for LawName {
    type Err = UnknownLaw;

    fn from_str(name: &str) -> Result<Self, UnknownLaw> {
        Self::ALL.into_iter().find(|law| law.as_str() == name).ok_or_else(|| UnknownLaw(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Law, Start};

    #[test]
    fn a_law_is_found_by_its_name() {
        for law in LawName::ALL {
            assert_eq!(law.as_str().parse(), Ok(law));
            assert_eq!(Law::new(law, Start::default()).name(), law);
        }
        let error = "illinois".parse::<LawName>().expect_err("there is none");
        let expected = "no law is called \"illinois\"; there are newreno, cubic, cubic-rfc9438, hd, chd, cdg, cdg-linux, ucc, \
                        lastlink, bbr";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
