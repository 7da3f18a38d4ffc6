//! Rate limit for repeated log lines: a burst, then a number per minute, with the count of those dropped.

use lasthop_units::{Span, Time};

/// Lets `burst` lines through per `period`, and counts the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogLimit {
    burst: u32,
    period: Span,
    period_begin: Time,
    said: u32,
    left_out: u64,
}

impl LogLimit {
    /// One line a minute.
    pub(crate) const fn each_minute() -> Self {
        Self::new(1, Span::from_secs(60))
    }

    /// `burst` lines in each `period`.
    pub(crate) const fn new(burst: u32, period: Span) -> Self {
        Self { burst, period, period_begin: Time::ZERO, said: 0, left_out: 0 }
    }

    /// `Some` if a line may be written now, with its suffix: empty, or the number dropped before it.
    pub(crate) fn may_say(&mut self, now: Time) -> Option<String> {
        if self.said > 0 && now.saturating_since(self.period_begin) >= self.period {
            self.said = 0;
        }
        if self.said >= self.burst {
            self.left_out += 1;
            return None;
        }
        if self.said == 0 {
            self.period_begin = now;
        }
        self.said += 1;
        Some(match std::mem::take(&mut self.left_out) {
            0 => String::new(),
            left_out => format!(" ({left_out} more of this kind left out)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told_with_the_next_line() {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let mut log_limit = LogLimit::new(2, Span::from_secs(60));
        let said: Vec<_> =
            [5, 6, 7, 64, 65, 65, 66].into_iter().map(|seconds| log_limit.may_say(at(seconds))).collect();
        let left_out = Some(" (2 more of this kind left out)".to_owned());
        let nothing = Some(String::new());
        assert_eq!(said, [nothing.clone(), nothing.clone(), None, None, left_out, nothing, None]);
    }
}
