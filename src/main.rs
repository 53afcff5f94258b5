//! recant: parse, run, map errors to exit statuses; nothing else.
fn main() {}
