//! What must hold in a store whenever no entry lives, for the tests.

use super::Store;
use super::heap::UNIT;
use super::shard::Shard;

impl Store {
    /// Fails unless every shard is consistent and the budget is what they take.
    pub(super) fn check(&self) {
        let mut cost = super::fixed_cost(self.shards.len() as u32);
        for shard in &self.shards {
            let mut shard = shard.0.lock();
            shard.check();
            shard.heap.keep_grants(false);
            shard.starved = false;
            cost += shard.heap.page_count() as u64 * super::heap::PAGE_COST;
            cost += shard.table.taken() - super::table::Table::COST;
        }
        assert_eq!(cost, self.budget.used(), "the budget counts what there is");
    }
}

impl Shard {
    fn check(&self) {
        let used = self.heap.check();
        let (mut items, mut units) = (0, 0);
        for (segment, list) in self.lru.lists.iter().enumerate() {
            let (mut r, mut before, mut count, mut bytes) = (list.head, 0, 0, 0);
            while r != 0 {
                let header = self.heap.header(r);
                assert_eq!(header.segment(), segment, "an item knows its segment");
                assert_eq!(self.heap.lru_prev(r), before, "links agree");
                let hash = self.hash(header.key());
                assert_eq!(
                    self.table.find(hash, |x| x == r),
                    Some(r),
                    "linked items are in the table"
                );
                let (mut piece, mut room) = (header.more(), header.0.len() - header.value_at());
                units += u64::from(self.heap.units(r));
                while piece != 0 {
                    assert!(self.heap.is_piece(piece));
                    assert_eq!(self.heap.piece_first(piece), r, "a piece knows its item");
                    assert!(room < header.value_len(), "no piece without need");
                    room += self.heap.block(piece).len() - super::header::HEADER_PIECE;
                    units += u64::from(self.heap.units(piece));
                    piece = self.heap.piece_next(piece);
                }
                assert!(room >= header.value_len(), "the value has room");
                (count, bytes) = (count + 1, bytes + header.footprint());
                (before, r) = (r, self.heap.lru_next(r));
            }
            assert_eq!(list.tail, before, "the list ends at its tail");
            assert_eq!(
                (list.items, list.bytes),
                (count, bytes),
                "the segment's numbers"
            );
            items += count;
        }
        assert_eq!(
            items,
            self.table.len(),
            "the table has the linked items only"
        );
        assert_eq!(
            units,
            used,
            "each used block belongs to an item: {} bytes lost",
            (used - units) * UNIT as u64
        );
    }
}
