//! Plans an operation: looks at everything and changes nothing. Finds all conflicts, refusals and damage, not only the first.
//!
//! In: a [`Job`](super::job::Job). Out: the journal to be, as items. The order: each object is [examined](examine), what goes on stands in
//! the [`draft`], rights and room are [checked](rights), and what goes on is [built](build) into a plan.

pub mod build;
pub mod choose;
pub mod choose_roads;
pub mod conflict;
pub mod draft;
pub mod examine;
pub mod item_sides;
pub mod left_out;
pub mod make_plan;
pub mod read_object;
pub mod rights;
pub mod road;
