//! Expands the list of kinds in `mod.rs`.

/// Each line has the kind, the keys that it alone has, its name in files, what it travels over, and in which pieces.
macro_rules! kinds {
    ($(
        $(#[doc = $meaning:literal])+
        $(#[cfg($when:meta)])?
        $kind:ident $(($own:ident: $keys:ty))? = $word:literal, over $transport:ident, in $pieces:ident;
    )+) => {
        /// The name of a kind of traffic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum KindName {
            $($(#[doc = $meaning])+ $(#[cfg($when)])? $kind,)+
        }

        impl KindName {
            /// Each with its name in files.
            pub const WORDS: &'static [(&'static str, Self)] = &[$($(#[cfg($when)])? ($word, Self::$kind),)+];

            /// Its name in files.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(#[cfg($when)])? Self::$kind => $word,)+
                }
            }

            /// What it sends, for the guide.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $($(#[cfg($when)])? Self::$kind => concat!($($meaning),+).trim_ascii(),)+
                }
            }

            /// What its data travel over.
            pub const fn transport(self) -> Transport {
                match self {
                    $($(#[cfg($when)])? Self::$kind => Transport::$transport,)+
                }
            }

            /// The pieces that are measured, if it has any.
            pub const fn pieces(self) -> Pieces {
                match self {
                    $($(#[cfg($when)])? Self::$kind => Pieces::$pieces,)+
                }
            }
        }

        /// A kind of traffic with its numbers, and what becomes of it as its application runs. Times called means are those of
        /// exponential distributions.
        #[derive(Clone, Debug, PartialEq)]
        #[enum_dispatch(Kind)]
        pub enum TrafficKind {
            $($(#[doc = $meaning])+ $(#[cfg($when)])? $kind($kind),)+
        }

        impl TrafficKind {
            /// Its name.
            pub const fn name(&self) -> KindName {
                match self {
                    $($(#[cfg($when)])? Self::$kind(_) => KindName::$kind,)+
                }
            }

            /// The kind that these keys say.
            pub(crate) fn of(keys: &TrafficKeys, part: &Part<'_>) -> Result<Self, DocumentError> {
                Ok(match keys.kind {
                    $($(#[cfg($when)])? KindName::$kind => Self::$kind($kind::read(keys, part)?),)+
                })
            }
        }

        /// The names of the kinds that use this key.
        pub(crate) fn users(key: &str) -> Vec<&'static str> {
            let mut users = Vec::new();
            $(
                $(#[cfg($when)])?
                if $kind::KEYS.contains(&key) $(|| <$keys as lasthop_keys::Keys>::section().key(key).is_some())? {
                    users.push($word);
                }
            )+
            users
        }

        #[cfg(test)]
        fn kinds_keys() -> impl Iterator<Item = &'static str> {
            [$($(#[cfg($when)])? $kind::KEYS),+].into_iter().flatten().copied()
        }

        lasthop_keys::keys! {
            /// The keys of one kind each.
            pub(crate) struct OwnKeys {
                with {
                    $($(
                        /// Its own.
                        $own: $keys;
                    )?)+
                }
            }
        }
    };
}
