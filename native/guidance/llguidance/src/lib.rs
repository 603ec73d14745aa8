// Exports llguidance's C functions from a static library.
pub use llguidance::ffi::*;
