//! Datagrams that come more than once.

/// Which datagrams of a flow have come to an end of it: a path may bring copies, and only the first counts.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// A bit for each number, in words of 64.
    came: Vec<u64>,
}

impl Copies {
    /// The datagram of this number comes. Returns whether it is the first of this number.
    pub fn is_first(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        self.came.resize(self.came.len().max(word + 1), 0);
        let is_first = self.came[word] & bit == 0;
        self.came[word] |= bit;
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_first_once_in_whatever_order() {
        let mut copies = Copies::default();
        let first = [0, 64, 63, 64, 0, 200, 63, 1].map(|number| copies.is_first(number));
        assert_eq!(first, [true, true, true, false, false, true, false, true]);
    }
}
