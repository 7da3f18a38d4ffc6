//! Expands the list of policies in `lib.rs`.

/// Each line has the policy, its name in files, the seconds from the first upload until it has settled, what bounds the
/// windows, the settings that it uses, and how it is built.
macro_rules! policies {
    ($($variant:ident = $name:literal, settles in $settles:literal s, $meaning:literal, [$($settings:expr),*], $build:expr;)+) => {
        lasthop_keys::words! {
            /// The name of a policy.
            pub enum PolicyName {
                $(
                    #[doc = $meaning]
                    $variant = $name,
                )+
            }
        }

        impl PolicyName {
            /// All policies.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// What bounds the windows, in a few words.
            pub const fn meaning(self) -> &'static str {
                [$($meaning),+][self as usize]
            }

            /// The time from the first upload until the policy has settled: the warm-up that a run needs. Zero for
            /// policies that bound from the first tick, or whenever a round trip has risen.
            pub const fn settles_after(self) -> Span {
                Span::from_secs([$($settles),+][self as usize])
            }

            /// Whether it uses this key of [`PolicySettings`].
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
