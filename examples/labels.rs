// SPDX-License-Identifier: MIT
//! Labels from Rust, without a crate: the functions are looked up, so the same binary runs without
//! the library. (Programs that use the custom-labels crate need nothing at all: its labels are read.)
//!
//!     rustc -O examples/labels.rs
//!     labelprof run -- ./labels && labelprof top --by tenant labelprof.*.pb.gz
use std::ffi::{c_char, c_int, c_void, CString};
use std::sync::OnceLock;

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

type Set = extern "C" fn(*const c_char, *const c_char) -> c_int;
type Unset = extern "C" fn(*const c_char) -> c_int;

fn functions() -> Option<(Set, Unset)> {
    static FOUND: OnceLock<Option<(Set, Unset)>> = OnceLock::new();
    *FOUND.get_or_init(|| unsafe {
        let set = dlsym(std::ptr::null_mut(), b"labelprof_set\0".as_ptr().cast());
        let unset = dlsym(std::ptr::null_mut(), b"labelprof_unset\0".as_ptr().cast());
        if set.is_null() || unset.is_null() {
            return None;
        }
        Some((std::mem::transmute::<*mut c_void, Set>(set), std::mem::transmute::<*mut c_void, Unset>(unset)))
    })
}

/// A label of the calling thread for as long as the value lives.
struct Label(CString);

impl Label {
    fn new(key: &str, value: &str) -> Label {
        let key = CString::new(key).expect("no NUL in a key");
        if let (Some((set, _)), Ok(value)) = (functions(), CString::new(value)) {
            set(key.as_ptr(), value.as_ptr());
        }
        Label(key)
    }
}

impl Drop for Label {
    fn drop(&mut self) {
        if let Some((_, unset)) = functions() {
            unset(self.0.as_ptr());
        }
    }
}

fn handle(tenant: &str, n_bytes: usize) -> Vec<u8> {
    let _label = Label::new("tenant", tenant);
    vec![1; n_bytes]
}

fn main() {
    let kept: Vec<_> = [("acme", 100_000), ("globex", 50_000), ("acme", 100_000)]
        .iter()
        .map(|(tenant, n_bytes)| handle(tenant, *n_bytes))
        .collect();
    println!("done");
    std::mem::forget(kept);
}
