//! What the tool has laid out, as the data plane finds it.

use super::*;

/// Two halves, and in the gaps around them what nobody may read: it leads to a rule that nobody has.
pub(super) struct Book {
    pub(super) indexes: [Index; 2],
    pub(super) boundaries: Vec<Boundary>,
    pub(super) links: Vec<Link>,
}

pub(super) const NOBODYS: Link = Link {
    rank: u64::MAX,
    rule: 666,
    next: NO_LINK,
    sport: [0, u16::MAX],
    dport: [0, u16::MAX],
    proto: 0,
    kind: 0,
    reserved: [0; 6],
};

impl Book {
    pub(super) fn new(halves: [Compiled; 2], gaps: [u32; 2]) -> Self {
        let mut book = Self { indexes: Default::default(), boundaries: Vec::new(), links: Vec::new() };
        book.leave(gaps[0], 1 + gaps[1]);
        for (index, half) in halves.into_iter().enumerate() {
            let (boundaries, links) = (half.boundaries(), half.links());
            let placed = half.place(book.boundaries.len() as u32, book.links.len() as u32);
            assert_eq!((placed.boundaries.len(), placed.links.len()), (boundaries, links));
            book.indexes[index] = placed.index;
            book.boundaries.extend(placed.boundaries);
            book.links.extend(placed.links);
            book.leave(gaps[1], gaps[0]);
        }
        book
    }

    pub(super) fn leave(&mut self, boundaries: u32, links: u32) {
        let nobodys = Boundary { start: [0, 0], link: NO_LINK.into() };
        self.boundaries.extend((0..boundaries).map(|_| nobodys));
        self.links.extend((0..links).map(|_| NOBODYS));
    }

    pub(super) fn one(rules: &[Slotted<'_>], direction: Direction) -> Self {
        let compiled = compile(rules, direction).unwrap();
        Self::new([compiled.clone(), compiled], [0, 0])
    }

    pub(super) fn meets(&self, half: u32, packet: &Packet) -> u32 {
        lookup(self, half, &Key::new(&packet.facts(), Per::FLOW.kind, Per::FLOW.prefix).encode())
    }
}

impl Rules for Book {
    fn index(&self, half: u32) -> Option<&Index> {
        self.indexes.get(half as usize)
    }

    fn boundary(&self, at: u32) -> Option<&Boundary> {
        self.boundaries.get(at as usize)
    }

    fn link(&self, at: u32) -> Option<&Link> {
        self.links.get(at as usize)
    }
}

/// What holds of every layout. Returns the length of the longest chain.
pub(super) fn check_layout(placed: &Placed, first_boundary: u32, first_link: u32) -> usize {
    let Placed { index, boundaries, links } = placed;
    let mut next_table = first_boundary;
    for table in index.tables {
        assert_eq!(table.first, next_table, "tables lie one behind the other");
        next_table += table.len;
        assert!(table.len < 1 << MAX_STEPS);
        let of_table = &boundaries[(table.first - first_boundary) as usize..][..table.len as usize];
        if let Some(first) = of_table.first() {
            assert_eq!(first.start, [0, 0]);
        }
        for pair in of_table.windows(2) {
            assert!(pair[0].start < pair[1].start, "{pair:?}");
            assert_ne!(pair[0].link, pair[1].link, "{pair:?}");
        }
    }
    assert_eq!((next_table - first_boundary) as usize, boundaries.len());
    let mut longest = 0;
    for boundary in boundaries {
        let mut at = u32::try_from(boundary.link).unwrap();
        let mut rank = u64::MAX;
        let mut length = 0;
        while at != NO_LINK {
            let link = links[(at - first_link) as usize];
            assert!(link.rank < rank, "the best is first: {link:?}");
            assert_ne!(link.rule, DEFAULT_RULE);
            assert_eq!(link.reserved, [0; 6]);
            assert!(link.kind != 0 || link.next == NO_LINK, "nothing comes after a rule that takes all");
            (at, rank) = (link.next, link.rank);
            length += 1;
        }
        assert!(length <= MAX_CHAIN as usize);
        longest = longest.max(length);
    }
    longest
}
