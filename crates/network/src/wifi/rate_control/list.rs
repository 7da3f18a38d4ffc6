//! Expands the list of rate controls in `mod.rs`.

/// Each line has the rate control, its name in files, the standards that may have it, and how many transmissions of a frame go
/// with it. The controller has its name.
macro_rules! rate_controls {
    ($(
        $(#[doc = $meaning:literal])+
        $(#[cfg($when:meta)])?
        $control:ident = $word:literal, $standards:ident, $transmissions:literal transmissions;
    )+) => {
        /// The rate control.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub enum RateControl {
            $($(#[doc = $meaning])+ $(#[cfg($when)])? $control,)+
        }

        impl RateControl {
            /// All of them.
            pub const ALL: &'static [Self] = &[$($(#[cfg($when)])? Self::$control),+];

            /// Each with its name in files.
            pub const WORDS: &'static [(&'static str, Self)] = &[$($(#[cfg($when)])? ($word, Self::$control)),+];

            /// Its name in files.
            pub const fn as_str(self) -> &'static str {
                [$($(#[cfg($when)])? $word),+][self as usize]
            }

            /// What it is, for the guide.
            pub const fn meaning(self) -> &'static str {
                [$($(#[cfg($when)])? concat!($($meaning),+).trim_ascii()),+][self as usize]
            }

            /// How often a frame is usually transmitted at most.
            pub const fn usual_retry_limit(self) -> u8 {
                [$($(#[cfg($when)])? $transmissions),+][self as usize]
            }

            /// Whether stations of 802.11b and 802.11g may have it, and those of 802.11n and later.
            const fn standards(self) -> [bool; 2] {
                [$($(#[cfg($when)])? rate_controls!(@ $standards)),+][self as usize]
            }
        }

        /// A controller of any kind.
        #[derive(Clone, Debug)]
        #[enum_dispatch(Controller)]
        #[allow(clippy::large_enum_variant, reason = "there are two for each station")]
        pub(crate) enum AnyController {
            $($(#[cfg($when)])? $control($control),)+
        }

        impl AnyController {
            /// A fresh controller of what the station has.
            pub(crate) fn new(setup: &Setup<'_>) -> Self {
                match setup.own.rate_control {
                    $($(#[cfg($when)])? RateControl::$control => Self::$control($control::new(setup)),)+
                }
            }
        }
    };
    (@ of_all) => { [true, true] };
    (@ of_earlier) => { [true, false] };
    (@ of_later) => { [false, true] };
}
