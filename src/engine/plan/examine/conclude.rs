//! Decides what to do at a path, from what was expected, found and wanted.

use super::examiner::{ExaminedMove, Examiner, Verdict};
use crate::checkpoint::Kept;
use crate::engine::job::Move;
use crate::engine::plan::item_sides::{as_recorded, learned, overlay_mark, staying, stays};
use crate::engine::step::Act;
use crate::session::Side;
use crate::tree::State;

impl Examiner<'_> {
    /// Decides what to do, from what was expected, found and wanted.
    pub fn conclude(&self, mv: Move, looked: &mut ExaminedMove) {
        let item = &mut looked.item;
        item.forced = matches!(looked.verdict, Verdict::Keep);
        match looked.verdict {
            Verdict::Go | Verdict::Keep => {}
            Verdict::AlreadySo => return stays(mv, item),
            _ => return,
        }
        item.whole = item.forced && item.was_dir() && !mv.in_place;
        let held = item.to.take();
        let unread = self.verb.inward() && !item.forced;
        if let (Some(found), Some(hash)) = (&mut item.from, mv.from.as_ref().and_then(State::hash).filter(|_| unread))
            && found.state.hash().is_none()
        {
            found.set_hash(hash);
        }
        // What was found by force teaches the record nothing before it is the `before`.
        item.planning.learned = !item.forced && (learned(&mv.from, item.from.as_ref()) || learned(&mv.to, held.as_ref()));
        if mv.in_place {
            item.act = Act::SetMeta;
            item.kept = Kept::Metadata;
            let to = item.from.as_ref().zip(mv.to.clone()).map(|(from, to)| staying(from, to, mv.from.as_ref(), item.forced));
            // The hash may be known from the `before` alone, if that was read when it was held. What is put has the same content.
            item.planning.learned |= !item.forced && learned(&mv.to, to.as_ref());
            item.to = to;
            if item.forced && item.side == Side::Out {
                item.side = Side::Lost;
            }
            return;
        }
        item.act = match (&item.from, &mv.to) {
            (None, None) => Act::Stay,
            (None, Some(_)) => Act::Place,
            (Some(_), Some(_)) => Act::Replace,
            (Some(_), None) => Act::Remove,
        };
        item.planning.mark = held.as_ref().zip(mv.to.as_ref()).and_then(|(held, to)| overlay_mark(&held.state.meta, &to.meta));
        item.planning.as_recorded = held.as_ref().zip(mv.to.as_ref()).is_some_and(|(held, to)| held.state.meta == to.meta);
        item.planning.owned = held.as_ref().zip(mv.to.as_ref()).is_some_and(|(held, to)| held.state.meta.uid == to.meta.uid);
        item.held = mv.to_at.filter(|_| held.is_some());
        item.to = mv.to.map(|to| as_recorded(to, held));
        if let Some(why) = mv.uncovered {
            item.kept = Kept::Uncovered { why: why.into() };
        }
        // By force something else came off the tree than the `after`, which is lost unless the record can make it again. A redo gives back
        // what was found.
        if item.forced && item.side == Side::Out {
            item.side = Side::Lost;
        }
    }
}
