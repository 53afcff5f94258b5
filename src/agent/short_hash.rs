//! Short signs of things that are compared again later.

/// FNV-1a of the numbers' bytes: <http://www.isthe.com/chongo/tech/comp/fnv>. Nobody is to be kept from making two that are the same.
pub fn short(numbers: [u64; 3]) -> u64 {
    let bytes = numbers.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
