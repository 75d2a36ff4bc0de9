//! Which places in a block of memory may hold a secret: random bytes look different from text,
//! pointers and numbers.

/// Secrets are at least that long, in bytes; what looks random for that long is worth a trial.
const SHORTEST: usize = 32;
/// The longest secret, in bytes.
const LONGEST: usize = 48;
/// The most candidates of each kind that are kept.
const MOST: usize = 1 << 18;
/// The fewest different values among the first 32 bytes. Random ones have 30 on average, fewer than
/// this once in 100,000 times.
const LEAST_VALUES: u32 = 24;
/// How many of the first 32 bytes have their highest bit set: text has none. Random bytes leave
/// this range once in 50,000 times.
const HIGH_BITS: std::ops::RangeInclusive<u32> = 5..=27;
/// Allocators align to 8 or 16 bytes, but compact object headers of Java take 12.
const STEP: usize = 4;

/// Where more than this looks random in one piece, in bytes, it is compressed or a certificate, and
/// rarely a secret among others.
const LONGEST_ALONE: usize = 256;
/// Secrets in such a piece lie in slots of an allocator, and so do most others.
const SLOT: usize = 16;

/// What may be a secret: the first bytes of it.
pub(super) struct Candidate {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Candidate {
    fn of(bytes: &[u8]) -> Candidate {
        let len = bytes.len().min(LONGEST);
        let mut candidate = Candidate {
            bytes: [0; LONGEST],
            len,
        };
        candidate.bytes[..len].copy_from_slice(&bytes[..len]);
        candidate
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// All that may be a secret in what was looked at.
#[derive(Default)]
pub(super) struct Candidates {
    in_slots: Vec<Candidate>,
    among_others: Vec<Candidate>,
    elsewhere: Vec<Candidate>,
}

impl Candidates {
    /// Takes every place of a block where a secret may be.
    pub(super) fn take(&mut self, block: &[u8]) {
        let (words, _) = block.as_chunks::<STEP>();
        let mut start = 0;
        while start < words.len() {
            let run = words[start..].iter().take_while(|word| is_random(word));
            let end = start + run.count();
            self.take_run(&block[start * STEP..end * STEP], start * STEP);
            start = end + 1;
        }
    }

    /// Takes the places of what looks random in one piece, which begins there in its block.
    fn take_run(&mut self, run: &[u8], begins: usize) {
        let is_alone = run.len() <= LONGEST_ALONE;
        let in_slot = begins.next_multiple_of(SLOT) - begins;
        let (first, step) = match is_alone {
            true => (0, STEP),
            false => (in_slot, SLOT),
        };
        for place in (first..run.len()).step_by(step) {
            let Some(bytes) = run[place..].first_chunk() else {
                break;
            };
            let found = match (is_alone, (begins + place).is_multiple_of(SLOT)) {
                (true, true) => &mut self.in_slots,
                (true, false) => &mut self.elsewhere,
                (false, _) => &mut self.among_others,
            };
            if looks_random(bytes) && found.len() < MOST {
                found.push(Candidate::of(&run[place..]));
            }
        }
    }

    /// The likely ones first. A service that has run for a while has many places that are in no
    /// slot: what is left of its buffers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Candidate> {
        let in_slots = self.in_slots.iter().chain(&self.among_others);
        in_slots.chain(&self.elsewhere)
    }
}

/// Halves of pointers and of small numbers are empty; those of random bytes once in 65,536 times.
fn is_random(word: &[u8; STEP]) -> bool {
    let word = u32::from_ne_bytes(*word);
    word >> 16 != 0 && word & 0xffff != 0
}

fn looks_random(bytes: &[u8; SHORTEST]) -> bool {
    let (words, _) = bytes.as_chunks::<8>();
    let high: u32 = words
        .iter()
        .map(|word| (u64::from_ne_bytes(*word) & 0x8080_8080_8080_8080).count_ones())
        .sum();
    if !HIGH_BITS.contains(&high) {
        return false;
    }
    let mut seen = [0u64; 4];
    for byte in bytes {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|part| part.count_ones()).sum::<u32>() >= LEAST_VALUES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that look random, by a linear congruential generator.
    fn random(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn places(block: &[u8]) -> Vec<usize> {
        let mut candidates = Candidates::default();
        candidates.take(block);
        let found = candidates.iter().map(|candidate| {
            let bytes = candidate.bytes();
            let mut windows = block.windows(bytes.len());
            windows.position(|window| window == bytes).unwrap()
        });
        found.collect()
    }

    #[test]
    fn a_secret_among_zeroes_pointers_and_text_is_found_at_its_place() {
        let mut missed = 0;
        for seed in 0..1000 {
            let mut block = vec![0; 64];
            block.extend_from_slice(&0x7f12_3456_7890u64.to_ne_bytes());
            block.extend_from_slice(&random(seed, 48));
            block.extend_from_slice(&48u64.to_ne_bytes());
            block.extend_from_slice(b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36");
            missed += usize::from(!places(&block).contains(&72));
        }
        // a word of 65,536 has an empty half
        assert!(missed <= 3, "{missed} of 1000");
    }

    #[test]
    fn text_pointers_and_numbers_are_not_tried() {
        let text =
            "Connection #0 to host localhost left intact; SELECT id FROM t WHERE x = 1".repeat(9);
        let pointers: Vec<u8> = (0..99u64)
            .flat_map(|n| (0xc000_1234_5678 + n * 4096).to_ne_bytes())
            .collect();
        let numbers: Vec<u8> = (0..99u32)
            .flat_map(|n| (1_700_000_000 + n).to_ne_bytes())
            .collect();
        for block in [text.as_bytes(), &pointers, &numbers] {
            assert_eq!(places(block), [0; 0]);
        }
    }

    #[test]
    fn slots_come_first_and_what_looks_random_over_a_long_way_has_no_other_place() {
        let mut block = random(1, 4096);
        block.extend_from_slice(&[0; 64]);
        block.extend_from_slice(&random(2, 48));
        // and one that is in no slot
        block.extend_from_slice(&[0; 52]);
        block.extend_from_slice(&random(3, 48));
        let places = places(&block);
        assert!(places[..5].contains(&4160), "{:?}", &places[..5]);
        let last = places.len() - 5;
        assert!(places[last..].contains(&4260), "{:?}", &places[last..]);
        let slots = places.iter().filter(|place| **place < 4096);
        assert!(slots.clone().count() > 200 && slots.clone().all(|place| place % SLOT == 0));
    }

    #[test]
    fn what_is_shorter_than_a_secret_is_none() {
        for len in 0..SHORTEST {
            assert_eq!(places(&random(len as u64, len)), [0; 0]);
        }
    }
}
