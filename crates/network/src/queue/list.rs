//! Expands the list of disciplines in `mod.rs`.

/// Each line has the discipline, its parameters, its name in files, whether only an access point of Wi-Fi may have it, and its
/// usual limit in packets. `$discipline<P>` is the queue.
macro_rules! disciplines {
    ($(
        $(#[doc = $meaning:literal])+
        $(#[cfg($when:meta)])?
        $discipline:ident $(($parameters:ident: $config:ty))? = $word:literal, $where:ident, $packets:literal packets;
    )+) => {
        /// The queueing discipline.
        #[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
        pub enum Discipline {
            #[default]
            $($(#[doc = $meaning])+ $(#[cfg($when)])? $discipline $(($config))?,)+
        }

        impl Discipline {
            /// Each with its name in files and its usual parameters.
            pub const WORDS: &'static [(&'static str, Self)] =
                &[$($(#[cfg($when)])? ($word, Self::$discipline $((<$config>::DEFAULT))?)),+];

            /// Its name in files.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(#[cfg($when)])? Self::$discipline { .. } => $word,)+
                }
            }

            /// What it is, for the guide.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $($(#[cfg($when)])? Self::$discipline { .. } => concat!($($meaning),+).trim_ascii(),)+
                }
            }

            /// Its usual limit in packets at an access point.
            pub const fn usual_packets(self) -> usize {
                match self {
                    $($(#[cfg($when)])? Self::$discipline { .. } => $packets,)+
                }
            }

            /// Whether only an access point of Wi-Fi may have it.
            pub const fn is_of_wifi(self) -> bool {
                match self {
                    $($(#[cfg($when)])? Self::$discipline { .. } => disciplines!(@ $where),)+
                }
            }

            /// Whether its parameters are possible.
            pub(crate) fn validate(self) -> Result<(), ConfigError<&'static str>> {
                match self {
                    $($(#[cfg($when)])? Self::$discipline $(($parameters))? => disciplines!(@ check $($parameters)?),)+
                }
            }
        }

        /// A queue of any discipline.
        #[derive(Clone, Debug)]
        #[enum_dispatch(Queue<P>)]
        #[allow(clippy::large_enum_variant, reason = "there is one in front of each transmitter")]
        pub(crate) enum AnyQueue<P> {
            $($(#[cfg($when)])? $discipline($discipline<P>),)+
        }

        impl<P> AnyQueue<P> {
            /// An empty queue; `name` is that of its random stream, if it has one.
            pub(crate) fn new(config: QueueConfig, streams: Streams, name: &str) -> Self {
                let setup = Setup { limit: config.packets, streams, name };
                let mut queue = match config.discipline {
                    $($(#[cfg($when)])? Discipline::$discipline $(($parameters))? =>
                        Self::$discipline($discipline::new($($parameters,)? setup)),)+
                };
                queue.desk_mut().filter = config.ack_filter.map(|filter| Filter { filter, read: |_| None });
                queue
            }
        }
    };
    (@ anywhere) => { false };
    (@ of_wifi) => { true };
    (@ check) => { Ok(()) };
    (@ check $parameters:ident) => { $parameters.validate() };
}
