//! Parallel runs on all cores. The results do not depend on the number of cores.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does `work` on every item, on up to `jobs` threads. The results are in the order of the items. One thread does its
/// items in order.
///
/// # Panics
/// If `work` panics.
pub fn in_order<T: Sync, R: Send>(items: &[T], jobs: NonZero<usize>, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..jobs.get().min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = work(item);
                    results.lock().expect("no thread panics while it holds the lock")[index] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().expect("no thread panics while it holds the lock");
    results.into_iter().map(|result| result.expect("every item was worked on")).collect()
}

/// The number of runs that this machine can do in parallel.
pub fn all_cores() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_for_any_number_of_threads() {
        let items: Vec<u64> = (0..100).collect();
        // Later items finish sooner.
        let slow_square = |item: &u64| {
            (0..(100 - item) * 1_000).for_each(|round| {
                std::hint::black_box(round);
            });
            item * item
        };
        let expected: Vec<u64> = items.iter().map(|item| item * item).collect();
        for jobs in [1, 2, 7, 200] {
            assert_eq!(in_order(&items, NonZero::new(jobs).expect("not zero"), slow_square), expected);
        }
        assert!(in_order(&[], all_cores(), slow_square).is_empty());
    }
}
