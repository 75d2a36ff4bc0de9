//! Positions of the blocks of a flame graph. Stacks that begin with the same callers share the
//! blocks of these callers.

/// A function with one chain of callers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) name: String,
    /// Number of callers below it.
    pub(super) level: usize,
    /// Number of samples to the left of it.
    pub(super) start: u64,
    /// Its samples and those of the functions that it calls.
    pub(super) samples: u64,
}

/// The blocks of stacks. Each stack has its names, the outermost first, and a count of samples.
pub(super) fn blocks(stacks: impl Iterator<Item = (Vec<String>, u64)>) -> Vec<Block> {
    let mut stacks: Vec<_> = stacks.collect();
    stacks.sort_unstable();
    let mut blocks = Vec::new();
    // the blocks of the previous stack, by level
    let mut open: Vec<Block> = Vec::new();
    let mut start = 0;
    for (path, samples) in stacks {
        let is_shared = |(block, name): &(&Block, &String)| block.name == **name;
        let shared = open.iter().zip(&path).take_while(is_shared).count();
        blocks.extend(open.drain(shared..).rev());
        for block in &mut open {
            block.samples += samples;
        }
        let new = path.into_iter().enumerate().skip(shared);
        open.extend(new.map(|(level, name)| Block {
            name,
            level,
            start,
            samples,
        }));
        start += samples;
    }
    blocks.append(&mut open);
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_the_blocks_of_their_callers_only() {
        let stack = |path: &str, samples| (path.split(' ').map(str::to_owned).collect(), samples);
        let stacks = [
            stack("sh b x", 5),
            stack("sh a x", 1),
            stack("sh a", 2),
            stack("sh a x y", 4),
        ];
        let mut all = blocks(stacks.into_iter());
        all.sort_by_key(|block| (block.level, block.start));
        let drawn: Vec<_> = all
            .iter()
            .map(|block| (block.name.as_str(), block.level, block.start, block.samples))
            .collect();
        assert_eq!(
            drawn,
            [
                ("sh", 0, 0, 12),
                ("a", 1, 0, 7),
                ("b", 1, 7, 5),
                ("x", 2, 2, 5),
                ("x", 2, 7, 5),
                ("y", 3, 3, 4),
            ]
        );
    }
}
