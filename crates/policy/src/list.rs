//! What the list of policies in `lib.rs` makes of its lines.

/// Each line: the policy, its name in files, the seconds from the first upload until a run shows the policy and no longer its
/// beginning, what bounds the windows, which settings it looks at, and how it is built.
macro_rules! policies {
    ($($(#[$attribute:meta])* $variant:ident = $name:literal, settles in $settles:literal s, $meaning:literal, [$($settings:expr),*], $build:expr;)+) => {
        /// Which policy decides.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum PolicyName {
            $(
                #[doc = $meaning]
                #[serde(rename = $name)]
                $(#[$attribute])*
                $variant,
            )+
        }

        impl PolicyName {
            /// Every policy there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Their names, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name as it is written in a scenario or a configuration.
            pub const fn as_str(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// What bounds the windows, in a few words.
            pub const fn meaning(self) -> &'static str {
                [$($meaning),+][self as usize]
            }

            /// How long it takes from the first upload until what a run shows is the policy and no longer its beginning: about so
            /// much of a run is warm-up. Zero for what bounds from the first tick, or when a round trip has risen, whenever that is.
            pub const fn settles_after(self) -> Span {
                Span::from_secs([$($settles),+][self as usize])
            }

            /// Whether it looks at this key of [`PolicySettings`].
            pub fn looks_at(self, key: &str) -> bool {
                let settings: &[&[&[&str]]] = &[$(&[$($settings),*]),+];
                key == "policy" || settings[self as usize].iter().any(|keys| keys.contains(&key))
            }

            pub(crate) fn build(self, settings: &PolicySettings) -> Box<dyn Policy + Send> {
                match self {
                    $(Self::$variant => {
                        let build: fn(&PolicySettings) -> Box<dyn Policy + Send> = $build;
                        build(settings)
                    })+
                }
            }
        }
    };
}
