//! What somebody may have meant.

/// The candidate closest to `name`, if it is close: at most two edits, and fewer than half of the letters.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 2.min(name.chars().count().saturating_sub(1) / 2);
    let count = name.chars().count();
    candidates
        // Also keeps a word of megabytes from being compared.
        .filter(|candidate| candidate.chars().count().abs_diff(count) <= limit)
        .map(|candidate| (edits(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, row by row.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{edits, nearest};

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("eth0", "eth0"), 0);
        assert_eq!(edits("eth0", "eht0"), 2);
        assert_eq!(edits("eth", "eth0"), 1);
        assert_eq!(edits("", "eth0"), 4);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn only_a_close_name_is_suggested() {
        let there = ["lo", "eth0", "wlan0"];
        assert_eq!(nearest("eth1", there.into_iter()), Some("eth0"));
        assert_eq!(nearest("wlan1", there.into_iter()), Some("wlan0"));
        assert_eq!(nearest("x", there.into_iter()), None);
        assert_eq!(nearest("bridge", there.into_iter()), None);
    }
}
