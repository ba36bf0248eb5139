// SPDX-License-Identifier: MIT
//! Labels by libdatadog's writers alone: a context attached, updated in place, swapped and detached;
//! another thread's. Each place leaks an object in a function of its own.
use libdd_library_config::otel_process_ctx;
use libdd_library_config::tracer_metadata::{ThreadLocalMetadata, TracerMetadata};
use libdd_otel_thread_ctx::linux::OwnedThreadContext;
use std::hint::black_box;

/// Of one size each, or the compiler makes one function of them all.
macro_rules! leaks {
    ($($name:ident $size:literal)*) => {$(
        #[no_mangle]
        #[inline(never)]
        extern "C" fn $name() {
            std::mem::forget(black_box(Vec::<u8>::with_capacity($size)));
            black_box(());
        }
    )*};
}
leaks! {
    leak_outside 1001
    leak_attached 1002
    leak_updated 1003
    leak_swapped 1004
    leak_in_thread 1005
}

const TRACE: [u8; 16] = [0x11; 16];
const SPAN: [u8; 8] = [0x22; 8];
const ROOT: [u8; 8] = [0x33; 8];

fn context(attributes: &[(u8, &str)]) -> OwnedThreadContext {
    OwnedThreadContext::new(TRACE, SPAN, 1, ROOT, attributes)
}

fn publish(keys: &[&str]) {
    let metadata = TracerMetadata {
        service_name: Some("shop".into()),
        threadlocal_metadata: Some(ThreadLocalMetadata {
            attribute_keys: keys.iter().map(|key| key.to_string()).collect(),
            ..Default::default()
        }),
        ..Default::default()
    };
    otel_process_ctx::publish(&metadata.to_otel_process_ctx()).unwrap();
}

fn main() {
    publish(&["tenant", "route"]);
    leak_outside();
    assert!(context(&[(1, "acme"), (2, "/cart")]).attach().is_none());
    leak_attached();
    OwnedThreadContext::update(TRACE, SPAN, 1, ROOT, &[(1, "globex")]);
    leak_updated();
    publish(&["tenant", "route", "late"]);
    let before = context(&[(3, "known now")]).attach();
    leak_swapped();
    drop(before);
    std::thread::spawn(|| {
        context(&[(1, "of the thread")]).attach();
        leak_in_thread();
        drop(OwnedThreadContext::detach());
    })
    .join()
    .unwrap();
    drop(OwnedThreadContext::detach());
    leak_outside();
}
