//! What packets tell of congestion without being lost.

/// The ECN field of an IP header: RFC 3168 §5; RFC 9331 §2 for what ECT(1) says.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// The sender cannot be told of a mark.
    #[default]
    NotEct = 0,
    /// ECT(1): it can, and wants the marks of L4S.
    Ect1 = 1,
    /// ECT(0): it can, and takes a mark for a loss.
    Ect0 = 2,
    /// CE: a queue has marked it, for congestion.
    Ce = 3,
}

impl Ecn {
    /// The field in the two lowest bits of what was the type of service (IPv4), or of the traffic class (IPv6).
    pub const fn of_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Its two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Whether a queue may mark the packet instead of dropping it.
    pub const fn may_be_marked(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_the_bits_of_rfc_3168() {
        // RFC 3168 §5, figure 1: 00 Not-ECT, 01 ECT(1), 10 ECT(0), 11 CE.
        let fields = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        assert_eq!(fields.map(Ecn::bits), [0b00, 0b01, 0b10, 0b11]);
        assert!(fields.into_iter().all(|field| Ecn::of_bits(0xb8 | field.bits()) == field));
    }
}
